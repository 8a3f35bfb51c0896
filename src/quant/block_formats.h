#pragma once

#include <cstddef>

#include "quant/integer_form.h"

/// The formats with one scale (and perhaps a minimum) per block of linear quants: q1_0 to q8_0. Contracts: FormatInfo::unpack, encode.
namespace quench {

void unpack_q1_0(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q2_0(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q4_0(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q4_1(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q5_0(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q5_1(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_q8_0(const std::byte* block, IntegerBlock& out) noexcept;

void encode_q1_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q2_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q4_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q4_1(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q5_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q5_1(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_q8_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;

}  // namespace quench
