#include "model/request_check.h"

#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"

namespace quench {

void check_tokens(const ModelConfig& config, std::span<const TokenId> tokens) {
  if (tokens.empty()) throw_bad_request("forward: no tokens");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < config.n_vocab) continue;
    throw_bad_request("forward: token id " + std::to_string(tokens[i]) + " (number " + std::to_string(i + 1) + " of " +
                      std::to_string(tokens.size()) + ") is outside the vocabulary of " + std::to_string(config.n_vocab));
  }
}

void check_logits(std::span<const float> logits, std::size_t position) {
  // Comparison with a NaN is false, so that one pass finds both.
  bool finite = true;
  for (const float value : logits) finite &= std::fabs(value) <= std::numeric_limits<float>::max();
  if (finite) return;
  throw_bad_file("forward: the logits at position " + std::to_string(position) +
                 " are not finite: the weights are damaged, or drive the model out of range");
}

}  // namespace quench
