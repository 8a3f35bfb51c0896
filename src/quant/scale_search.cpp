#include "quant/scale_search.h"

#include <algorithm>
#include <cmath>

namespace quench {
namespace {

/// Sums of one rounding of the values: enough for the least-squares scale and the squared error that it saves.
struct Projection {
  float sum_xq = 0.0f;
  float sum_qq = 0.0f;
  [[nodiscard]] float scale() const noexcept { return sum_qq > 0.0f ? sum_xq / sum_qq : 0.0f; }
  [[nodiscard]] float gain() const noexcept { return sum_xq * scale(); }
};

Projection project(std::span<const float> values, float inverse_scale, int lowest, int highest) noexcept {
  Projection sums;
  for (const float x : values) {
    const auto q = static_cast<float>(quantize(x * inverse_scale, lowest, highest));
    sums.sum_xq += x * q;
    sums.sum_qq += q * q;
  }
  return sums;
}

float affine_error(std::span<const float> values, AffineFit fit, int highest) noexcept {
  const float id = inverse(fit.scale);
  float error = 0.0f;
  for (const float x : values) {
    const float difference = x - (fit.scale * static_cast<float>(quantize((x - fit.offset) * id, 0, highest)) + fit.offset);
    error += difference * difference;
  }
  return error;
}

/// The least-squares scale and offset for the quants that `fit` gives.
AffineFit refine(std::span<const float> values, AffineFit fit, int highest, bool free_offset) noexcept {
  const float id = inverse(fit.scale);
  const auto n = static_cast<float>(values.size());
  float sum_q = 0.0f;
  float sum_qq = 0.0f;
  float sum_x = 0.0f;
  float sum_xq = 0.0f;
  for (const float x : values) {
    const auto q = static_cast<float>(quantize((x - fit.offset) * id, 0, highest));
    sum_q += q;
    sum_qq += q * q;
    sum_x += x;
    sum_xq += x * q;
  }
  const float determinant = n * sum_qq - sum_q * sum_q;
  if (!(determinant > 0.0f)) return fit;
  AffineFit refined{.scale = (n * sum_xq - sum_q * sum_x) / determinant, .offset = (sum_qq * sum_x - sum_q * sum_xq) / determinant};
  if (!free_offset && refined.offset > 0.0f) refined = {.scale = sum_xq / sum_qq, .offset = 0.0f};
  return refined.scale > 0.0f ? refined : fit;
}

}  // namespace

float fit_scale(std::span<const float> values, int lowest, int highest) noexcept {
  float extreme = 0.0f;
  for (const float x : values) extreme = std::abs(x) > std::abs(extreme) ? x : extreme;
  float best_scale = 0.0f;
  float best_gain = 0.0f;
  // Half a step beyond the end clips the extreme; up to a step and a half inside leaves room that finer steps may use.
  for (const int end : {lowest, highest}) {
    for (int step = -2; step <= 4; ++step) {
      const float target = static_cast<float>(end) * (1.0f + static_cast<float>(step) * 0.25f / static_cast<float>(highest));
      const Projection sums = project(values, target * inverse(extreme), lowest, highest);
      if (sums.gain() > best_gain) {
        best_gain = sums.gain();
        best_scale = sums.scale();
      }
    }
  }
  return best_scale;
}

AffineFit fit_affine(std::span<const float> values, int highest, bool free_offset) noexcept {
  const auto [low_at, high_at] = std::minmax_element(values.begin(), values.end());
  const float low = free_offset ? *low_at : std::min(*low_at, 0.0f);
  const float range = *high_at - low;
  if (!(range > 0.0f)) return {.scale = 0.0f, .offset = low};
  AffineFit best{.scale = range / static_cast<float>(highest), .offset = low};
  float best_error = affine_error(values, best, highest);
  for (int step = -4; step <= 8; ++step) {
    // Wider steps than the range needs clip the upper end; the refinement then moves both ends inward.
    const AffineFit start{.scale = range / (static_cast<float>(highest) + static_cast<float>(step) * 0.25f), .offset = low};
    const AffineFit candidate = refine(values, refine(values, start, highest, free_offset), highest, free_offset);
    const float error = affine_error(values, candidate, highest);
    if (error < best_error) {
      best_error = error;
      best = candidate;
    }
  }
  return best;
}

float fit_small_range(std::span<const float> values, int highest) noexcept {
  float mean = 0.0f;
  float largest = 0.0f;
  for (const float x : values) {
    mean += std::abs(x) / static_cast<float>(values.size());
    largest = std::max(largest, std::abs(x));
  }
  // The iteration finds the nearest optimum only: it starts at the mean, which suits bell shapes, and where the largest is 1 or 2.
  Projection best;
  for (const float start : {mean, largest, 0.5f * largest, -mean, -largest, -0.5f * largest}) {
    if (highest == 1 && start < 0.0f) break;  // symmetric: the other sign is the same
    float scale = start;
    for (int iteration = 0; iteration < 8; ++iteration) {
      const Projection sums = project(values, inverse(scale), -1, highest);
      scale = sums.scale();
      if (sums.gain() > best.gain()) best = sums;
    }
  }
  return best.scale();
}

}  // namespace quench
