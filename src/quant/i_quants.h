#pragma once

#include <cstddef>

#include "quant/integer_form.h"

/// The formats whose quants are points of a published grid: iq1, iq2, iq3. Contract: FormatInfo::unpack.
namespace quench {

void unpack_iq1_s(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_iq1_m(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_iq2_xxs(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_iq2_xs(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_iq2_s(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_iq3_xxs(const std::byte* block, IntegerBlock& out) noexcept;
void unpack_iq3_s(const std::byte* block, IntegerBlock& out) noexcept;

}  // namespace quench
