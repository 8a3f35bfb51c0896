#include "model/request_check.h"

#include <bit>
#include <cstdint>
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

bool all_finite(std::span<const float> values) noexcept {
  // Infinities and NaN have all bits of the exponent. In integers, so that compilers make vectors of it.
  constexpr std::uint32_t kExponent = 0x7F800000;
  std::uint32_t found = 0;
  for (const float value : values) found |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent);
  return found == 0;
}

void check_logits(std::span<const float> logits, std::size_t position) {
  if (!all_finite(logits)) throw_not_finite(position);
}

void throw_not_finite(std::size_t position) {
  throw_bad_file("forward: the logits at position " + std::to_string(position) +
                 " are not finite: the weights are damaged, or drive the model out of range");
}

}  // namespace quench
