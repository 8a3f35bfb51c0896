#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned.h"
#include "base/float16.h"
#include "quant/format.h"

namespace quench {

struct Compute;

/// What a weight format wants its activations to be.
enum class ActivationKind {
  kF32,      ///< f32, f16 weights
  kBF16,     ///< bf16 weights: rounded to bf16, below 2^-56 is zero
  kBlock32,  ///< int8 with one f32 scale per 32
  kBlock256  ///< int8 with one f32 scale per 256
};

[[nodiscard]] ActivationKind activation_kind(Format format) noexcept;

/// Elements whose quants are summed once, for the formats whose weights have a bias or a minimum.
inline constexpr std::size_t kSumElements = 16;

/// Tokens that kernels of tiles take at once: the rows of an activation tile.
inline constexpr std::size_t kUnitTokens = 16;

/// Of kUnitTokens rows, side by side: what multiplies with all of them at once reads one line for each block.
/// scales     [blocks][16]                f32
/// sums       [blocks of 32][16]          f32: scale x sum of the 32 quants                     kBlock32
/// pairs      [blocks of 256][8][16][2]   int16: sums of 16 quants                             kBlock256
/// pairs_of_32 [blocks of 256][4][16][2]  int16: sums of 32 quants                             kBlock256
struct UnitScales {
  const float* scales;
  const float* sums;
  const std::int16_t* pairs;
  const std::int16_t* pairs_of_32;
};

/// Rows of activations in the form that one kind of weights multiplies with: made once, shared by Q, K, V or by gate and up.
/// Quantization is per token: d = absmax / 127 in f32, q = round-half-even(x / d) within +-127, d = 0 gives 0.
/// quants [rows][columns]  int8      scales [rows][columns / 32 or 256]  f32      sums [rows][columns / 16]  int16: exact sums of 16 quants
class Activations {
 public:
  Activations() = default;
  /// Room for `max_rows` x `max_columns` of any kind; reused from layer to layer. Throws Error(kOutOfMemory).
  Activations(std::size_t max_rows, std::size_t max_columns);

  /// Quantizes (or, for kF32, borrows) x: rows of `columns` f32, `stride` apart. x must stay alive while kF32 is used. Rows and columns
  /// are within the room; columns are a whole number of blocks of the kind. Runs on the pool when there are several rows.
  void assign(const Compute& compute, ActivationKind kind, const float* x, std::size_t rows, std::size_t columns, std::size_t stride);

  /// Makes row i of this object the assigned row rows[i]: the tokens of one expert side by side, without copying any. `rows` must stay
  /// alive; the next assign ends it.
  void select(std::span<const std::uint32_t> rows) noexcept {
    selection_ = rows.data();
    rows_ = rows.size();
  }

  [[nodiscard]] ActivationKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] const float* f32_row(std::size_t row) const noexcept { return f32_ + stored(row) * f32_stride_; }
  /// Followed by zeros up to a multiple of 32 elements.
  [[nodiscard]] const BF16* bf16_row(std::size_t row) const noexcept {
    return reinterpret_cast<const BF16*>(quants_.data()) + stored(row) * row_elements_;
  }
  [[nodiscard]] const std::int8_t* quants_row(std::size_t row) const noexcept {
    return reinterpret_cast<const std::int8_t*>(quants_.data()) + stored(row) * row_elements_;
  }
  /// Elements from one row to the next of quants or bf16, and whether the rows do lie so: not after select.
  [[nodiscard]] std::size_t row_stride() const noexcept { return row_elements_; }
  [[nodiscard]] bool rows_in_order() const noexcept { return selection_ == nullptr; }
  [[nodiscard]] const float* scales_row(std::size_t row) const noexcept { return scales_.data() + stored(row) * scales_per_row_; }
  [[nodiscard]] const std::int16_t* sums_row(std::size_t row) const noexcept {
    return sums_.data() + stored(row) * (columns_ / kSumElements);
  }
  /// Rows [16 unit, 16 unit + 16) of the assigned ones, whatever is selected; those past the last hold anything, as their quants do. Only
  /// for kernels whose table asks for units (TokenBlocking::units).
  [[nodiscard]] UnitScales unit_scales(std::size_t unit) const noexcept;

 private:
  [[nodiscard]] std::size_t stored(std::size_t row) const noexcept { return selection_ == nullptr ? row : selection_[row]; }
  void assign_row(const Compute& compute, const float* x, std::size_t row) noexcept;
  void add_to_unit(std::size_t row) noexcept;

  ActivationKind kind_ = ActivationKind::kF32;
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::size_t row_elements_ = 0;  ///< columns rounded up to 32
  std::size_t scales_per_row_ = 0;
  const float* f32_ = nullptr;
  std::size_t f32_stride_ = 0;
  const std::uint32_t* selection_ = nullptr;
  AlignedBuffer quants_;
  AlignedArray<float> scales_;
  AlignedArray<std::int16_t> sums_;
  AlignedArray<float> unit_scales_;
  AlignedBuffer unit_sums_;
};

}  // namespace quench
