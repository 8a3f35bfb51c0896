#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace quench {

/// `value` clamped to [lowest, highest], then rounded to nearest, ties to even. Bounds within +-2^21. NaN gives `lowest`.
[[nodiscard]] inline int quantize(float value, int lowest, int highest) noexcept {
  const float low = static_cast<float>(lowest);
  const float high = static_cast<float>(highest);
  const float clamped = value > low ? (value < high ? value : high) : low;
  // Adding 1.5 x 2^23 leaves the integer in the low bits of the significand.
  return static_cast<int>(std::bit_cast<std::uint32_t>(clamped + 12582912.0f) - 0x4B400000u);
}

/// 1 / scale, and 0 where that is not finite: a scale of 0 encodes zeros.
[[nodiscard]] inline float inverse(float scale) noexcept {
  const float result = 1.0f / scale;
  return result - result == 0.0f ? result : 0.0f;
}

/// The scale s for which s x quantize(x / s, lowest, highest) is near the values in the mean square; either sign. 0 for zeros.
/// The candidates map the value of largest magnitude to the ends of the range and a little beyond; each is refined by one
/// least-squares step.
[[nodiscard]] float fit_scale(std::span<const float> values, int lowest, int highest) noexcept;

/// Scale >= 0 and offset <= 0 for which scale x q + offset with q in 0..highest is near the values in the mean square.
struct AffineFit {
  float scale;
  float offset;
};
/// `free_offset` lets the offset be positive too (q4_1, q5_1).
[[nodiscard]] AffineFit fit_affine(std::span<const float> values, int highest, bool free_offset) noexcept;

/// The scale for quants of -1, 0, 1 (and 2 when `highest` is 2): the best that Lloyd's iteration finds from a few starts.
[[nodiscard]] float fit_small_range(std::span<const float> values, int highest) noexcept;

}  // namespace quench
