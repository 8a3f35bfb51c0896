#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/amx/lanes.h"
#include "kernels/amx/tile_registers.h"

/// Ways to multiply a super-block's scale x quant into bytes, so that the sum over all 256 elements is one chain of tile products.
/// S = sum of scale x (q - bias) x q_x is exact in int32 either way.
///
/// kPlanes          byte planes, each multiplied for itself
/// Scale            what a line of 16 rows is multiplied with: made from the sub-block's scale, a word for each half of a row's 4 bytes
/// fold(q, s, line) stored quants of a chunk -> its line in each plane (kPlaneBytes apart)
/// dot<plane>       the product that the plane's bytes need
/// sum(row)         S of 16 rows from the planes' results (kTileBytes apart)
namespace quench::amx {

using V = WordLanes;

enum class FoldingCost { kBytes, kWords };

constexpr std::size_t kPlaneBytes = 256 * kTileRows;  ///< 256 k of 16 rows

[[gnu::always_inline]] inline V::I load_result(const std::byte* row) noexcept {
  return V::loadu_i(reinterpret_cast<const std::int32_t*>(row));
}

/// |scale x (q - bias)| <= 128: one plane, negated, because q3_K's products reach +128 and not -129.
/// A word of two quants is multiplied at once. The lower product is made non-negative by 128, so that nothing is borrowed from the upper.
template <int kBias>
struct NegatedBytes {
  static constexpr int kPlanes = 1;
  static constexpr FoldingCost kCost = FoldingCost::kBytes;
  struct Scale {
    V::B factor;
    V::B offset;
  };
  [[gnu::always_inline]] static Scale scale(V::B words) noexcept {
    const V::B bias = V::multiply_words(words, V::set1_words(0x0101 * kBias));
    return {V::subtract_words(V::zero_i(), words), V::add_words(bias, V::set1_words(0x0080))};
  }
  [[gnu::always_inline]] static void fold(V::B quants, const Scale& by, std::byte* line) noexcept {
    const V::B biased = V::add_words(V::multiply_words(quants, by.factor), by.offset);
    V::store_bytes(line, V::xor_bytes(biased, V::set1_words(0x0080)));
  }
  template <int kPlane, int kC, int kA, int kB>
  [[gnu::always_inline]] static void dot() noexcept {
    Tiles::dot_signed<kC, kA, kB>();
  }
  [[gnu::always_inline]] static V::I sum(const std::byte* row) noexcept { return V::sub_i(V::zero_i(), load_result(row)); }
};

/// q4_K, q5_K: scale = 8 high + low with digits of 3 bits. A quant of at most 5 bits times a digit is at most 217: two quants are
/// multiplied as one word without a carry, and the planes hold unsigned bytes.
struct ScaleDigits {
  static constexpr int kPlanes = 2;
  static constexpr FoldingCost kCost = FoldingCost::kBytes;
  struct Scale {
    V::B low;
    V::B high;
  };
  [[gnu::always_inline]] static Scale scale(V::B words) noexcept { return {V::and_words(words, 7), V::words_right<3>(words)}; }
  [[gnu::always_inline]] static void fold(V::B quants, const Scale& by, std::byte* line) noexcept {
    V::store_bytes(line, V::multiply_words(quants, by.low));
    V::store_bytes(line + kPlaneBytes, V::multiply_words(quants, by.high));
  }
  template <int kPlane, int kC, int kA, int kB>
  [[gnu::always_inline]] static void dot() noexcept {
    Tiles::dot_unsigned<kC, kA, kB>();
  }
  [[gnu::always_inline]] static V::I sum(const std::byte* row) noexcept {
    return V::add_i(load_result(row), V::shift_left<3>(load_result(row + kTileBytes)));
  }
};

/// Everything else: the product is a signed word, 256 high + low, with high signed and low unsigned.
template <int kBias>
struct WordBytes {
  static constexpr int kPlanes = 2;
  static constexpr FoldingCost kCost = FoldingCost::kWords;
  struct Scale {
    V::B factor;
    V::B offset;
  };
  [[gnu::always_inline]] static Scale scale(V::B words) noexcept { return {words, V::multiply_words(words, V::set1_words(kBias))}; }
  [[gnu::always_inline]] static void fold(V::B quants, const Scale& by, std::byte* line) noexcept {
    const V::B even = V::subtract_words(V::multiply_words(V::low_bytes(quants), by.factor), by.offset);
    const V::B odd = V::subtract_words(V::multiply_words(V::words_right<8>(quants), by.factor), by.offset);
    V::store_bytes(line, V::join_bytes(even, V::words_left_8(odd)));
    V::store_bytes(line + kPlaneBytes, V::join_bytes(V::words_right<8>(even), odd));
  }
  template <int kPlane, int kC, int kA, int kB>
  [[gnu::always_inline]] static void dot() noexcept {
    if constexpr (kPlane == 0) {
      Tiles::dot_unsigned<kC, kA, kB>();
    } else {
      Tiles::dot_signed<kC, kA, kB>();
    }
  }
  [[gnu::always_inline]] static V::I sum(const std::byte* row) noexcept {
    return V::add_i(load_result(row), V::shift_left<8>(load_result(row + kTileBytes)));
  }
};

}  // namespace quench::amx
