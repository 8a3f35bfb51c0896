#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/block_layout.h"
#include "quant/grids.h"
#include "quant/integer_form.h"
#include "quant/sign_masks.h"

/// One row's file block of the formats without a layout of their own, read 32 quants at a time for lanes V: quants(i) are elements
/// 32i..32i + 31, scales(i) the scales of their two halves. |quants| < kBias, and quant + kBias fits kBits. Formats that store signs apart
/// also give magnitudes(i) and minus(i), masks of where a quant is negative.
namespace quench::generic {

/// Signs of eight quants as masks, from the seven that are stored.
constexpr auto kEvenSignMasks = [] {
  std::array<std::uint64_t, 128> masks{};
  for (unsigned s = 0; s < 128; ++s) masks[s] = kSignMasks[kEvenSigns[s]];
  return masks;
}();

struct HalfScalesOf32 {
  int first;
  int second;
};
constexpr int odd_scale(unsigned stored) noexcept { return static_cast<int>(2 * stored + 1); }
constexpr HalfScalesOf32 one_scale(unsigned stored) noexcept { return {odd_scale(stored), odd_scale(stored)}; }
constexpr HalfScalesOf32 nibble_scales(unsigned byte) noexcept { return {odd_scale(byte & 15u), odd_scale(byte >> 4)}; }

template <class V>
[[gnu::always_inline]] inline typename V::Row even_sign_masks(std::uint32_t signs) noexcept {
  return V::row_of(kEvenSignMasks[signs & 127u], kEvenSignMasks[(signs >> 7) & 127u], kEvenSignMasks[(signs >> 14) & 127u],
                   kEvenSignMasks[(signs >> 21) & 127u]);
}
template <class V>
[[gnu::always_inline]] inline typename V::Row sign_masks(const std::uint8_t* signs) noexcept {
  std::uint32_t bits;
  std::memcpy(&bits, signs, sizeof(bits));
  return V::masks_of_bits(bits);
}
/// Eight entries of four points.
template <class V, class Entry>
[[gnu::always_inline]] inline typename V::Row row_of_fours(const Entry& entry) noexcept {
  const std::uint32_t words[8] = {entry(0), entry(1), entry(2), entry(3), entry(4), entry(5), entry(6), entry(7)};
  return V::row_of_words(words);
}

/// In place: of a copy, some pieces would be read across the pieces in which it was written, and such a load waits until all before it
/// has left the processor's store queue.
template <class Block>
[[gnu::always_inline]] inline const Block& block_at(const std::byte* file) noexcept {
  static_assert(alignof(Block) <= 2, "blocks lie at even places");
  return *reinterpret_cast<const Block*>(file);
}

/// The scale of a super-block is kFactor times its f16.
template <class BlockType, int kSub, int kQuantBits, int kQuantBias>
struct GridRow {
  static constexpr int kSubElements = kSub;
  static constexpr int kBits = kQuantBits;
  static constexpr int kBias = kQuantBias;

  const BlockType& b;
  explicit GridRow(const std::byte* file) noexcept : b(block_at<BlockType>(file)) {}
  F16 d() const noexcept { return b.d; }
};

template <class V>
struct Iq2_XXSRow : GridRow<BlockIq2_XXS, 32, 7, 64> {
  using GridRow::GridRow;
  static constexpr float kFactor = 0.125f;
  HalfScalesOf32 scales(std::size_t i) const noexcept { return one_scale(b.words[4 * i + 3] >> 12); }
  typename V::Row magnitudes(std::size_t i) const noexcept {
    const unsigned low = b.words[4 * i];
    const unsigned high = b.words[4 * i + 1];
    return V::row_of(kIq2XxsGrid[low & 255u], kIq2XxsGrid[low >> 8], kIq2XxsGrid[high & 255u], kIq2XxsGrid[high >> 8]);
  }
  typename V::Row minus(std::size_t i) const noexcept {
    return even_sign_masks<V>(b.words[4 * i + 2] | (std::uint32_t{b.words[4 * i + 3]} << 16));
  }
};

template <class V>
struct Iq2_XSRow : GridRow<BlockIq2_XS, 16, 7, 64> {
  using GridRow::GridRow;
  static constexpr float kFactor = 0.125f;
  HalfScalesOf32 scales(std::size_t i) const noexcept { return nibble_scales(b.scales[i]); }
  typename V::Row magnitudes(std::size_t i) const noexcept {
    const std::uint16_t* w = b.words.data() + 4 * i;
    return V::row_of(kIq2XsGrid[w[0] & 511u], kIq2XsGrid[w[1] & 511u], kIq2XsGrid[w[2] & 511u], kIq2XsGrid[w[3] & 511u]);
  }
  typename V::Row minus(std::size_t i) const noexcept {
    const std::uint16_t* w = b.words.data() + 4 * i;
    return V::row_of(kEvenSignMasks[w[0] >> 9], kEvenSignMasks[w[1] >> 9], kEvenSignMasks[w[2] >> 9], kEvenSignMasks[w[3] >> 9]);
  }
};

template <class V>
struct Iq2_SRow : GridRow<BlockIq2_S, 16, 7, 64> {
  using GridRow::GridRow;
  static constexpr float kFactor = 0.125f;
  HalfScalesOf32 scales(std::size_t i) const noexcept { return nibble_scales(b.scales[i]); }
  typename V::Row magnitudes(std::size_t i) const noexcept {
    const std::uint8_t* low = b.low.data() + 4 * i;
    const unsigned high = b.high[i];
    return V::row_of(kIq2SGrid[low[0] | ((high & 3u) << 8)], kIq2SGrid[low[1] | ((high & 12u) << 6)],
                     kIq2SGrid[low[2] | ((high & 48u) << 4)], kIq2SGrid[low[3] | ((high & 192u) << 2)]);
  }
  typename V::Row minus(std::size_t i) const noexcept { return sign_masks<V>(b.signs.data() + 4 * i); }
};

template <class V>
struct Iq3_XXSRow : GridRow<BlockIq3_XXS, 32, 7, 64> {
  using GridRow::GridRow;
  static constexpr float kFactor = 0.25f;
  HalfScalesOf32 scales(std::size_t i) const noexcept { return one_scale(b.words[2 * i + 1] >> 12); }
  typename V::Row magnitudes(std::size_t i) const noexcept {
    const std::uint8_t* at = b.indices.data() + 8 * i;
    return row_of_fours<V>([at](std::size_t g) { return kIq3XxsGrid[at[g]]; });
  }
  typename V::Row minus(std::size_t i) const noexcept {
    return even_sign_masks<V>(b.words[2 * i] | (std::uint32_t{b.words[2 * i + 1]} << 16));
  }
};

template <class V>
struct Iq3_SRow : GridRow<BlockIq3_S, 32, 5, 16> {
  using GridRow::GridRow;
  static constexpr float kFactor = 1.0f;
  HalfScalesOf32 scales(std::size_t i) const noexcept { return one_scale((unsigned{b.scales[i / 2]} >> (4 * (i % 2))) & 15u); }
  typename V::Row magnitudes(std::size_t i) const noexcept {
    const std::uint8_t* low = b.low.data() + 8 * i;
    const unsigned high = unsigned{b.high[i]} << 8;
    return row_of_fours<V>([low, high](std::size_t g) { return kIq3SGrid[low[g] | ((high >> g) & 256u)]; });
  }
  typename V::Row minus(std::size_t i) const noexcept { return sign_masks<V>(b.signs.data() + 4 * i); }
};

// iq1: 8 x grid + 1, or - 1 where a bit says so.

template <class V>
struct Iq1_SRow : GridRow<BlockIq1_S, 32, 5, 16> {
  using GridRow::GridRow;
  static constexpr float kFactor = 0.125f;
  HalfScalesOf32 scales(std::size_t i) const noexcept { return one_scale((b.high[i] >> 12) & 7u); }
  typename V::Row quants(std::size_t i) const noexcept {
    const std::uint8_t* low = b.low.data() + 4 * i;
    const unsigned high = b.high[i];
    const auto grid = V::row_of(kIq1SGrid[low[0] | ((high << 8) & 0x700u)], kIq1SGrid[low[1] | ((high << 5) & 0x700u)],
                                kIq1SGrid[low[2] | ((high << 2) & 0x700u)], kIq1SGrid[low[3] | ((high >> 1) & 0x700u)]);
    return V::add_rows(grid, V::row_of_all(1 - 2 * static_cast<int>(high >> 15)));
  }
};

template <class V>
struct Iq1_MRow : GridRow<BlockIq1_M, 16, 5, 16> {
  using GridRow::GridRow;
  static constexpr float kFactor = 0.125f;
  /// The f16 is spread over the top nibbles of the scale words.
  F16 d() const noexcept {
    unsigned bits = 0;
    for (std::size_t i = 0; i < 4; ++i) bits |= (unsigned{b.scales[i]} >> 12) << (4 * i);
    return F16{static_cast<std::uint16_t>(bits)};
  }
  HalfScalesOf32 scales(std::size_t i) const noexcept {
    const unsigned both = unsigned{b.scales[i / 2]} >> (6 * (i % 2));
    return {odd_scale(both & 7u), odd_scale((both >> 3) & 7u)};
  }
  typename V::Row quants(std::size_t i) const noexcept {
    const std::uint8_t* low = b.low.data() + 4 * i;
    const unsigned high = b.high[2 * i] | (unsigned{b.high[2 * i + 1]} << 8);
    const auto grid = V::row_of(kIq1SGrid[low[0] | ((high << 8) & 0x700u)], kIq1SGrid[low[1] | ((high << 4) & 0x700u)],
                                kIq1SGrid[low[2] | (high & 0x700u)], kIq1SGrid[low[3] | ((high >> 4) & 0x700u)]);
    const auto masks = V::row_of(mask(high, 3), mask(high, 7), mask(high, 11), mask(high, 15));
    return V::add_rows(grid, V::negate_where(V::row_of_all(1), masks));
  }

 private:
  static std::uint64_t mask(unsigned high, unsigned bit) noexcept { return std::uint64_t{0} - ((high >> bit) & 1u); }
};

/// Five digits a byte: digit n of 32 bytes are elements 32n..32n + 31, then come those of 16 bytes and, four each, of the last 4. A byte
/// times 3^n starts with digit n.
template <class V>
struct Tq1_0Row {
  static constexpr int kSubElements = 32;
  static constexpr int kBits = 2;
  static constexpr int kBias = 1;
  static constexpr float kFactor = 1.0f;

  typename V::Row rows[8];  ///< bytes whose first digit is the element's
  F16 scale;

  explicit Tq1_0Row(const std::byte* file) noexcept {
    const auto& b = block_at<BlockTq1_0>(file);
    scale = b.d;
    rows[0] = V::load_row(b.quants.data());
    for (std::size_t i = 1; i < 5; ++i) rows[i] = times_3(rows[i - 1]);
    // Digits of 16 bytes, two a row: in registers, because memory would be read in other pieces than it was written.
    std::uint64_t words[2];
    std::memcpy(words, b.quants.data() + 32, sizeof(words));
    const typename V::Row both = V::row_of(words[0], words[1], words[0], words[1]);
    rows[5] = V::add_rows(both, V::and_rows(V::add_rows(both, both), V::row_of(0, 0, kAll, kAll)));
    rows[6] = times_3(times_3(rows[5]));
    // Of 4 bytes, all four.
    std::uint32_t last;
    std::memcpy(&last, b.high.data(), sizeof(last));
    const std::uint64_t twice = last | std::uint64_t{last} << 32;
    const typename V::Row first = V::row_of(0, 0, twice, twice);
    const typename V::Row odd = V::row_of(0, 0, kAll << 32, kAll << 32);
    const typename V::Row two = V::add_rows(first, V::and_rows(V::add_rows(first, first), odd));
    const typename V::Row four = V::add_rows(two, V::and_rows(times_8(two), V::row_of(0, 0, 0, kAll)));
    rows[7] = V::add_rows(V::and_rows(times_3(times_3(rows[6])), V::row_of(kAll, kAll, 0, 0)), four);
  }
  F16 d() const noexcept { return scale; }
  HalfScalesOf32 scales(std::size_t) const noexcept { return {1, 1}; }
  typename V::Row quants(std::size_t i) const noexcept { return V::first_trits(rows[i]); }

 private:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  static typename V::Row times_3(typename V::Row v) noexcept { return V::add_rows(v, V::add_rows(v, v)); }
  static typename V::Row times_8(typename V::Row v) noexcept {
    v = V::add_rows(v, v);
    v = V::add_rows(v, v);
    return V::add_rows(v, v);
  }
};

/// Elements 32i..32i + 31 with their signs.
template <class V, class RowType>
[[gnu::always_inline]] inline typename V::Row signed_quants(const RowType& row, std::size_t i) noexcept {
  if constexpr (requires { row.minus(i); }) {
    return V::negate_where(row.magnitudes(i), row.minus(i));
  } else {
    return row.quants(i);
  }
}

/// sums + their dot with x, each half times its scale. A sign costs less on x: the quants are then unsigned as the product wants them.
template <class V, class RowType>
[[gnu::always_inline]] inline typename V::RowSums add_dot_of_32(typename V::RowSums sums, const RowType& row, std::size_t i,
                                                                const std::int8_t* x) noexcept {
  const HalfScalesOf32 both = row.scales(i);
  const auto scales = V::template row_scales<(RowType::kSubElements == 32)>(both.first, both.second);
  if constexpr (requires { row.minus(i); }) {
    return V::add_magnitude_dot(sums, row.magnitudes(i), V::negate_where(V::load_row(x), row.minus(i)), scales);
  } else {
    return V::add_row_dot(sums, row.quants(i), V::load_row(x), scales);
  }
}

}  // namespace quench::generic
