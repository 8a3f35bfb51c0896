#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "quant/block_layout.h"
#include "quant/integer_form.h"

/// The k-quants: 256 elements in sub-blocks with small integer scales. Contracts: FormatInfo::unpack, encode.
namespace quench {

void unpack_q2_K(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q3_K(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q4_K(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q5_K(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q6_K(const std::byte* block, IntegerBlock& out) noexcept;

void encode_q2_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q3_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q4_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q5_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q6_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;

/// The eight 6-bit scales and eight 6-bit minima of q4_K and q5_K in their 12 bytes.
[[nodiscard]] Bytes<12> pack_scales_and_minima(const std::array<int, 8>& scales, const std::array<int, 8>& minima) noexcept;
/// The sixteen 6-bit scales of q3_K, offset by 32 to 0..63, in their 12 bytes.
[[nodiscard]] Bytes<12> pack_q3_K_scales(const std::array<int, 16>& scales) noexcept;

}  // namespace quench
