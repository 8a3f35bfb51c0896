#include "kernels/activations.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "kernels/compute.h"

namespace quench {
namespace {

constexpr std::size_t kPadElements = 32;

/// Elements worth a join of the pool: quantizing runs at about 1 to 2 elements a nanosecond, a join costs about a microsecond.
constexpr std::size_t kElementsPerItem = 8192;

// Of a super-block's sums, in int16 a token: 8 pairs of sums of 16 quants, then 4 pairs of sums of 32.
constexpr std::size_t kPairs = 256 / kSumElements / 2;
constexpr std::size_t kPairsOf32 = kPairs / 2;
constexpr std::size_t kBlockPairs = 2 * (kPairs + kPairsOf32);
constexpr std::size_t kBytesPerSum = std::max(sizeof(float), kBlockPairs * sizeof(std::int16_t) * 32 / 256);

}  // namespace

ActivationKind activation_kind(Format format) noexcept {
  if (format == Format::kBF16) return ActivationKind::kBF16;
  switch (format_info(format).arithmetic) {
    case Arithmetic::kFloat: return ActivationKind::kF32;
    case Arithmetic::kBlock: return ActivationKind::kBlock32;
    case Arithmetic::kSuperBlock: return ActivationKind::kBlock256;
  }
  __builtin_unreachable();
}

Activations::Activations(std::size_t max_rows, std::size_t max_columns)
    : quants_(round_up(max_rows, kUnitTokens) * round_up(max_columns, kPadElements) * sizeof(BF16), "activations"),
      scales_(max_rows * ceil_div(max_columns, kPadElements), "activation scales"),
      sums_(max_rows * ceil_div(max_columns, kSumElements), "activation sums"),
      unit_scales_(round_up(max_rows, kUnitTokens) * ceil_div(max_columns, kPadElements), "activation scales"),
      unit_sums_(round_up(max_rows, kUnitTokens) * ceil_div(max_columns, kPadElements) * kBytesPerSum, "activation sums") {}

void Activations::assign(const Compute& compute, ActivationKind kind, const float* x, std::size_t rows, std::size_t columns,
                         std::size_t stride) {
  kind_ = kind;
  rows_ = rows;
  columns_ = columns;
  row_elements_ = round_up(columns, kPadElements);
  scales_per_row_ = kind == ActivationKind::kBlock256 ? columns / 256 : columns / 32;
  f32_ = x;
  f32_stride_ = stride;
  selection_ = nullptr;
  if (kind == ActivationKind::kF32) return;

  std::size_t rows_per_item = std::max<std::size_t>(1, kElementsPerItem / columns);
  // Two threads that write a unit's lines are slower than one.
  if (compute.kernels.blocking.units) rows_per_item = round_up(rows_per_item, kUnitTokens);
  const std::size_t items = ceil_div(rows, rows_per_item);
  const auto quantize_item = [&](std::size_t item, int) noexcept {
    const std::size_t end = std::min(rows, (item + 1) * rows_per_item);
    for (std::size_t row = item * rows_per_item; row < end; ++row) {
      assign_row(compute, x + row * stride, row);
      if (compute.kernels.blocking.units) add_to_unit(row);
    }
  };
  if (items == 1) {
    quantize_item(0, 0);
  } else {
    compute.pool.run(items, quantize_item);
  }
}

void Activations::assign_row(const Compute& compute, const float* x, std::size_t row) noexcept {
  std::byte* quants = quants_.data();
  float* scales = scales_.data() + row * scales_per_row_;
  std::int16_t* sums = sums_.data() + row * (columns_ / kSumElements);
  switch (kind_) {
    case ActivationKind::kF32: return;
    case ActivationKind::kBF16: {
      BF16* out = reinterpret_cast<BF16*>(quants) + row * row_elements_;
      compute.kernels.round_bf16(x, columns_, out);
      std::fill_n(out + columns_, row_elements_ - columns_, BF16{});
      return;
    }
    case ActivationKind::kBlock32:
      compute.kernels.quantize_block32(x, columns_, reinterpret_cast<std::int8_t*>(quants) + row * row_elements_, scales, sums);
      return;
    case ActivationKind::kBlock256:
      compute.kernels.quantize_block256(x, columns_, reinterpret_cast<std::int8_t*>(quants) + row * row_elements_, scales, sums);
      return;
  }
}

void Activations::add_to_unit(std::size_t row) noexcept {
  if (kind_ == ActivationKind::kBF16) return;
  const std::size_t token = row % kUnitTokens;
  const std::size_t blocks = scales_per_row_;
  const float* scales = scales_.data() + row * blocks;
  const std::int16_t* sums = sums_.data() + row * (columns_ / kSumElements);
  float* unit = unit_scales_.data() + row / kUnitTokens * blocks * kUnitTokens + token;
  for (std::size_t b = 0; b < blocks; ++b) unit[b * kUnitTokens] = scales[b];
  if (kind_ == ActivationKind::kBlock32) {
    float* products = unit_sums_.as<float>().data() + row / kUnitTokens * blocks * kUnitTokens + token;
    for (std::size_t b = 0; b < blocks; ++b) {
      products[b * kUnitTokens] = scales[b] * static_cast<float>(sums[2 * b] + sums[2 * b + 1]);
    }
    return;
  }
  std::int16_t* pairs = unit_sums_.as<std::int16_t>().data() + row / kUnitTokens * blocks * kBlockPairs * kUnitTokens + 2 * token;
  std::int16_t* pairs_of_32 = pairs + blocks * 2 * kPairs * kUnitTokens;
  constexpr std::size_t kLine = 2 * kUnitTokens;
  for (std::size_t b = 0; b < blocks; ++b, sums += 2 * kPairs) {
    for (std::size_t p = 0; p < kPairs; ++p, pairs += kLine) std::memcpy(pairs, sums + 2 * p, sizeof(std::int16_t[2]));
    for (std::size_t p = 0; p < kPairsOf32; ++p, pairs_of_32 += kLine) {
      const std::int16_t* four = sums + 4 * p;
      const std::int16_t pair[] = {static_cast<std::int16_t>(four[0] + four[1]), static_cast<std::int16_t>(four[2] + four[3])};
      std::memcpy(pairs_of_32, pair, sizeof(pair));
    }
  }
}

UnitScales Activations::unit_scales(std::size_t unit) const noexcept {
  const std::size_t blocks = scales_per_row_;
  const std::int16_t* pairs = unit_sums_.as<std::int16_t>().data() + unit * blocks * kBlockPairs * kUnitTokens;
  return {.scales = unit_scales_.data() + unit * blocks * kUnitTokens,
          .sums = unit_sums_.as<float>().data() + unit * blocks * kUnitTokens,
          .pairs = pairs,
          .pairs_of_32 = pairs + blocks * 2 * kPairs * kUnitTokens};
}

}  // namespace quench
