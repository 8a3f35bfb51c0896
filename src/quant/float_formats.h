#pragma once

#include <cstddef>

/// f32, f16 and bf16: a block is one element. Contracts: FormatInfo::decode, encode.
namespace quench {

void decode_f32(const std::byte* blocks, std::size_t n_blocks, float* out) noexcept;
void decode_f16(const std::byte* blocks, std::size_t n_blocks, float* out) noexcept;
void decode_bf16(const std::byte* blocks, std::size_t n_blocks, float* out) noexcept;

void encode_f32(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
/// Magnitudes beyond 65504 saturate.
void encode_f16(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_bf16(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;

}  // namespace quench
