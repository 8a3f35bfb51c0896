#pragma once

#include <bit>
#include <cstdint>

namespace quench {

/// IEEE binary16 and bfloat16 as storage. Arithmetic happens in f32.
struct F16 {
  std::uint16_t bits = 0;
  friend bool operator==(F16, F16) = default;
};

struct BF16 {
  std::uint16_t bits = 0;
  friend bool operator==(BF16, BF16) = default;
};

/// Exact; subnormals included. A NaN keeps its payload and is made quiet, as F16C does.
[[nodiscard]] constexpr float to_f32(F16 h) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (h.bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = h.bits & 0x3FFu;
  if (exponent == 31) {
    const std::uint32_t quiet = mantissa != 0 ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7F800000u | quiet | (mantissa << 13));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Subnormal or zero: mantissa x 2^-24 is exact in f32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

[[nodiscard]] constexpr float to_f32(BF16 b) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }

/// Round to nearest, ties to even, with IEEE overflow to infinity: what file formats mean by f16.
[[nodiscard]] constexpr F16 to_f16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<std::uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu))};
  if (magnitude >= 0x477FF000u) return {static_cast<std::uint16_t>(sign | 0x7C00u)};  // 65520 and above
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is subnormal: adding 0.5 puts the f16 ulp (2^-24) at the last bit of the f32 significand, and the
    // addition rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u))};
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return {static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13))};
}

/// As to_f16, but finite values beyond the range become +-65504: what the KV cache stores (numeric contract).
[[nodiscard]] constexpr F16 to_f16_saturate(float value) noexcept {
  const float clamped = value > 65504.0f ? 65504.0f : (value < -65504.0f ? -65504.0f : value);
  return to_f16(clamped);
}

/// Round to nearest, ties to even.
[[nodiscard]] constexpr BF16 to_bf16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace quench
