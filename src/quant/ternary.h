#pragma once

#include <cstddef>

#include "quant/integer_form.h"

/// The ternary formats: 256 elements of -1, 0 or 1 times one scale. Contracts: FormatInfo::unpack, encode.
namespace quench {

void unpack_tq1_0(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_tq2_0(const std::byte* block, IntegerBlock& out) noexcept;

void encode_tq1_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
void encode_tq2_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;

}  // namespace quench
