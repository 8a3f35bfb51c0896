#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "quant/format.h"

namespace quench {

/// A quantized block as the numeric contract sees it: small integers and the few floats that scale them. Every block and
/// super-block format has exactly one such form; all kernels compute from it.
///
/// kBlock:      value[i] = scale[g] * quants[i] + min[g],  g = i / group_elements
///   dot of group g with activations x (int8, scale sx per 32):
///     acc = fma(scale[g] * sx, float(sum quants * x), acc);  with minimum: acc = fma(min[g], sx * float(sum x), acc)
/// kSuperBlock: value[i] = scale[0] * sub_scale[j] * quants[i] - min[0] * sub_min[j],  j = i / sub_elements
///   with one activation scale sx per 256:
///     S = sum_j sub_scale[j] * dot_j, T = sum_j sub_min[j] * xsum_j   (both exact in int32)
///     acc = fma(scale[0] * sx, float(S), acc);  with minimum: acc = fma(-(min[0] * sx), float(T), acc)
struct IntegerBlock {
  alignas(64) std::array<std::int8_t, 256> quants;
  std::array<float, 8> scale;
  std::array<float, 8> min;
  std::array<std::int16_t, 16> sub_scale;
  std::array<std::int16_t, 16> sub_min;
};

/// `format` is not kFloat.
[[nodiscard]] IntegerShape integer_shape(Format format) noexcept;
/// Splits one file block. A loop over blocks of one format takes format_info(format).unpack once instead. `format` is not kFloat. Only the
/// first block_elements quants and the used scales are written.
void to_integer_form(Format format, const std::byte* block, IntegerBlock& out) noexcept;

}  // namespace quench
