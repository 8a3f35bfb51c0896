#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "quant/integer_form.h"

/// The formats whose 4-bit quants index a table of 16 values: iq4_nl, iq4_xs, mxfp4, nvfp4. Contracts: FormatInfo::unpack, encode.
namespace quench {

/// Values of iq4_nl and iq4_xs (ggml).
inline constexpr std::array<std::int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// E2M1 times two (OCP microscaling formats 1.0), so that every value is an integer; the scales carry the half.
inline constexpr std::array<std::int8_t, 16> kFp4Values = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// 2^(exponent - 128): half of what E8M0 means, exponents 0 and 1 as subnormals.
[[nodiscard]] float e8m0_half(std::uint8_t exponent) noexcept;
/// Half of what unsigned E4M3 means; 0 for 0x7F. The top bit is ignored.
[[nodiscard]] float ue4m3_half(std::uint8_t code) noexcept;

/// The largest code 0..0x7E whose ue4m3_half is at most `target` (not negative).
[[nodiscard]] std::uint8_t ue4m3_half_below(float target) noexcept;

void unpack_iq4_nl(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_iq4_xs(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_mxfp4(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_nvfp4(const std::byte* block, IntegerBlock& out) noexcept;

void encode_iq4_nl(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_iq4_xs(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_mxfp4(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_nvfp4(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;

}  // namespace quench
