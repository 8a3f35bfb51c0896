#include "engine/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quench {

TokenLogProbabilities log_probabilities(std::span<const float> logits, Token chosen, std::size_t n_top) {
  const double highest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  const double log_sum = highest + std::log(sum);
  const auto with_probability = [&](Token token) {
    return TokenProbability{.token = token, .log_probability = static_cast<float>(logits[token] - log_sum)};
  };
  TokenLogProbabilities result{.chosen = with_probability(chosen), .top = {}};
  n_top = std::min(n_top, logits.size());
  if (n_top == 0) return result;
  std::vector<Token> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), Token{0});
  std::ranges::partial_sort(tokens, tokens.begin() + static_cast<std::ptrdiff_t>(n_top),
                            [&](Token a, Token b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  for (std::size_t i = 0; i < n_top; ++i) result.top.push_back(with_probability(tokens[i]));
  return result;
}

}  // namespace quench
