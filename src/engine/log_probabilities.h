#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/token.h"

namespace quench {

struct TokenProbability {
  Token token = 0;
  float log_probability = 0.0f;  ///< natural logarithm
};

/// How probable a drawn token was, and the most probable ones, in the model's own distribution: before penalties, bias, temperature and
/// truncation.
struct TokenLogProbabilities {
  TokenProbability chosen;
  std::vector<TokenProbability> top;  ///< most probable first; of equals the lowest id
};

/// logits  [n_vocab]
/// n_top   how many of the most probable ones; at most n_vocab are given
[[nodiscard]] TokenLogProbabilities log_probabilities(std::span<const float> logits, Token chosen, std::size_t n_top);

}  // namespace quench
