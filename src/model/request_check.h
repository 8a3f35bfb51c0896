#pragma once

#include <cstddef>
#include <span>

#include "model/config.h"
#include "model/forward.h"

namespace quench {

/// Throws Error(kBadRequest) when there are no tokens or one is not in the vocabulary.
void check_tokens(const ModelConfig& config, std::span<const TokenId> tokens);

[[nodiscard]] bool all_finite(std::span<const float> values) noexcept;

/// NaN and infinity are outside the numeric contract. Throws Error(kBadFile) naming the position.
[[noreturn]] void throw_not_finite(std::size_t position);
/// The same, unless all_finite(logits).
void check_logits(std::span<const float> logits, std::size_t position);

}  // namespace quench
