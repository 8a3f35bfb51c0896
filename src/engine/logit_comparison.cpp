#include "engine/logit_comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quench {
namespace {

/// log(sum(exp(x))), shifted by the maximum.
double log_sum_exp(std::span<const float> row) noexcept {
  const double peak = *std::ranges::max_element(row);
  double sum = 0;
  for (const float value : row) sum += std::exp(static_cast<double>(value) - peak);
  return peak + std::log(sum);
}

double kl_divergence(std::span<const float> reference, std::span<const float> other) noexcept {
  const double reference_total = log_sum_exp(reference);
  const double other_total = log_sum_exp(other);
  double kl = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double log_p = static_cast<double>(reference[i]) - reference_total;
    const double log_q = static_cast<double>(other[i]) - other_total;
    kl += std::exp(log_p) * (log_p - log_q);
  }
  return std::max(kl, 0.0);
}

}  // namespace

std::size_t argmax(std::span<const float> values) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[best] || std::isnan(values[best])) best = i;
  }
  return best;
}

std::vector<std::size_t> top_tokens(std::span<const float> logits, std::size_t count) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](std::size_t a, std::size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  order.resize(count);
  return order;
}

LogitComparison compare_logits(std::span<const float> ours, std::span<const float> other, std::size_t n_vocab) {
  LogitComparison result;
  result.rows = ours.size() / n_vocab;
  double squares = 0;
  double absolutes = 0;
  for (std::size_t row = 0; row < result.rows; ++row) {
    const auto a = ours.subspan(row * n_vocab, n_vocab);
    const auto b = other.subspan(row * n_vocab, n_vocab);
    for (std::size_t i = 0; i < n_vocab; ++i) {
      const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      result.max_abs = std::max(result.max_abs, difference);
      absolutes += difference;
      squares += difference * difference;
    }
    const double kl = kl_divergence(b, a);
    result.mean_kl += kl;
    result.max_kl = std::max(result.max_kl, kl);
    result.last_argmax = argmax(a);
    result.last_other_argmax = argmax(b);
    result.last_value = a[result.last_argmax];
    result.last_other_value = b[result.last_other_argmax];
    if (result.last_argmax == result.last_other_argmax) ++result.same_argmax;
  }
  const double values = static_cast<double>(ours.size());
  result.mean_abs = absolutes / values;
  result.rms = std::sqrt(squares / values);
  result.mean_kl /= static_cast<double>(result.rows);
  return result;
}

}  // namespace quench
