#pragma once

#include <span>
#include <vector>

#include "base/token.h"
#include "engine/prefix_cache.h"
#include "model/config.h"
#include "model/forward.h"

namespace quench {

/// The embedding [n_embed] of a text: the hidden states that the head would multiply, pooled, of length 1. Nobody else uses `forward` and
/// the cache meanwhile: with an engine, between two steps. Idle pages of the prefix cache make room; what is computed is not kept.
///
/// Throws Error(kBadRequest) for no tokens or more than the context, Error(kOutOfMemory) when running answers hold the pages.
[[nodiscard]] std::vector<float> embed(Forward& forward, PrefixCache& prefix, std::span<const Token> tokens, Pooling pooling);

}  // namespace quench
