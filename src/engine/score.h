#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/token.h"
#include "engine/log_probabilities.h"
#include "engine/prefix_cache.h"
#include "model/forward.h"

namespace quench {

/// For each token but the first, how probable it was after those before it. [tokens - 1]. Nobody else uses `forward` and the cache
/// meanwhile: with an engine, between two steps. Idle pages of the prefix cache make room; what is computed is not kept.
/// n_top  how many of the most probable tokens of each place
///
/// Throws Error(kBadRequest) for no tokens, one outside the vocabulary, or more than the context; Error(kOutOfMemory) when running answers
/// hold the pages.
[[nodiscard]] std::vector<TokenLogProbabilities> score(Forward& forward, PrefixCache& prefix, std::span<const Token> tokens,
                                                       std::size_t n_top);

}  // namespace quench
