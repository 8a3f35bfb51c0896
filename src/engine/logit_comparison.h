#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace quench {

/// How far two sets of logits are apart. KL divergences are of softmax(other) from softmax(ours), in nats, summed in double.
struct LogitComparison {
  std::size_t rows = 0;
  double max_abs = 0;
  double mean_abs = 0;
  double rms = 0;
  double mean_kl = 0;
  double max_kl = 0;
  std::size_t same_argmax = 0;
  std::size_t last_argmax = 0;
  std::size_t last_other_argmax = 0;
  float last_value = 0;
  float last_other_value = 0;
};

/// ours, other  [rows][n_vocab], equal sizes
[[nodiscard]] LogitComparison compare_logits(std::span<const float> ours, std::span<const float> other, std::size_t n_vocab);

/// The first index of the largest value; NaN never wins.
[[nodiscard]] std::size_t argmax(std::span<const float> values) noexcept;
/// The `count` best tokens, best first; ties to the lower index.
[[nodiscard]] std::vector<std::size_t> top_tokens(std::span<const float> logits, std::size_t count);

}  // namespace quench
