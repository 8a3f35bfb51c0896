#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/packing/tiles.h"
#include "quant/table_quants.h"

/// Views of packed blocks as the dot products read them, for lanes V. Each is one block (or one group of a block) of all 16 rows; `sub`
/// counts registers of V::kN rows inside the tile.
namespace quench::generic {

// Readers of chunks: get<c>(s) is chunk c of the s-th of sub-tiles first_sub, first_sub + 1, ..., in about kInstructions (of AVX2).

template <class V>
struct ByteChunks {
  static constexpr int kInstructions = 0;
  const std::byte* quants;
  template <int kChunk>
  [[gnu::always_inline]] typename V::B get(int s) const noexcept {
    return V::load_bytes(quants + kChunk * tiles::kChunkBytes + static_cast<std::size_t>(s) * V::kBytes);
  }
};

template <class V>
struct NibbleChunks {
  static constexpr int kInstructions = 2;
  const std::byte* quants;
  template <int kChunk>
  [[gnu::always_inline]] typename V::B get(int s) const noexcept {
    const typename V::B both = V::load_bytes(quants + kChunk / 2 * tiles::kChunkBytes + static_cast<std::size_t>(s) * V::kBytes);
    return kChunk % 2 == 0 ? V::low_nibbles(both) : V::high_nibbles(both);
  }
};

/// Fields of kWidth bits, the first of them in field kFirst of the first chunk, each shifted left by kLeft.
template <class V, int kWidth, int kFirst = 0, int kLeft = 0>
struct FieldChunks {
  static constexpr int kInstructions = 2;
  const std::byte* quants;
  template <int kChunk>
  [[gnu::always_inline]] typename V::B get(int s) const noexcept {
    constexpr int kFields = 8 / kWidth;
    constexpr int kField = kFirst + kChunk;
    const std::byte* chunk = quants + kField / kFields * static_cast<int>(tiles::kChunkBytes);
    return V::template shift_and_mask<kLeft - kWidth*(kField % kFields), ((1 << kWidth) - 1) << kLeft>(
        V::load_bytes(chunk + static_cast<std::size_t>(s) * V::kBytes));
  }
};

/// A quant in two parts.
template <class V, class Low, class High>
struct JoinedChunks {
  static constexpr int kInstructions = Low::kInstructions + High::kInstructions + 1;
  Low low;
  High high;
  template <int kChunk>
  [[gnu::always_inline]] typename V::B get(int s) const noexcept {
    return V::or_bytes(low.template get<kChunk>(s), high.template get<kChunk>(s));
  }
};

/// 32 k: nibbles, and bit c of the fifth-bit chunk.
template <class V>
using FiveBitChunks = JoinedChunks<V, NibbleChunks<V>, FieldChunks<V, 1, 0, 4>>;
/// 16 k: nibbles, and bits 2c, 2c + 1 of the third chunk.
template <class V>
using SixBitChunks = JoinedChunks<V, NibbleChunks<V>, FieldChunks<V, 2, 0, 4>>;
/// 16 k of 32: pairs of bits, and bits kFirst + c of the third chunk.
template <class V, int kFirst>
using ThreeBitChunks = JoinedChunks<V, FieldChunks<V, 2>, FieldChunks<V, 1, kFirst, 2>>;

/// A table of 16 signed values, stored as value + kBias.
using NibbleTable = std::array<std::uint8_t, 16>;
template <int kBias>
[[nodiscard]] consteval NibbleTable biased_table(const std::array<std::int8_t, 16>& values) noexcept {
  NibbleTable table{};
  for (std::size_t i = 0; i < 16; ++i) table[i] = static_cast<std::uint8_t>(values[i] + kBias);
  return table;
}
inline constexpr int kFp4Bias = 12;
alignas(16) inline constexpr NibbleTable kFp4Table = biased_table<kFp4Bias>(kFp4Values);
alignas(16) inline constexpr NibbleTable kIq4Table = biased_table<128>(kIq4Values);

template <class V, const NibbleTable& kTable>
struct TableChunks {
  static constexpr int kInstructions = NibbleChunks<V>::kInstructions + 1;
  const std::byte* quants;
  template <int kChunk>
  [[gnu::always_inline]] typename V::B get(int s) const noexcept {
    return V::look_up(V::load_table(kTable.data()), NibbleChunks<V>{quants}.template get<kChunk>(s));
  }
};

// Scales of the 16 rows, kRowBytes for a row: load(p) is those of V::kN rows.

template <class V>
struct HalfScales {
  static constexpr std::size_t kRowBytes = sizeof(F16);
  static typename V::F load(const std::byte* p) noexcept { return V::load_f16(reinterpret_cast<const F16*>(p)); }
};

/// 2^(e - 128): the exponent goes into its place, and subnormal for 0 and 1.
template <class V>
struct ExponentScales {
  static constexpr std::size_t kRowBytes = 1;
  static typename V::F load(const std::byte* p) noexcept {
    const typename V::I e = V::load_u8(p);
    const typename V::I normal = V::template shift_left<23>(V::sub_i(e, V::set1_i(1)));
    const typename V::I subnormal = V::template shift_left<21>(V::add_i(e, V::set1_i(1)));
    return V::from_bits(V::select_i(V::gt_i(e, V::set1_i(1)), normal, subnormal));
  }
};

/// Half of unsigned E4M3 without its top bit; 0 for 0x7F. Subnormals, whose exponent is 0, are numbers of 2^-10 each: as f32 bits they
/// would be subnormal too, which costs some processors a hundred cycles.
template <class V>
struct E4M3Scales {
  static constexpr std::size_t kRowBytes = 1;
  static typename V::F load(const std::byte* p) noexcept {
    const typename V::I code = V::and_i(V::load_u8(p), V::set1_i(0x7F));
    const typename V::I number = V::select_i(V::gt_i(V::set1_i(0x7F), code), code, V::zero_i());
    const typename V::F normal = V::from_bits(V::add_i(V::template shift_left<20>(number), V::set1_i(119 << 23)));
    return V::select(V::gt(V::set1(0x1p-7f), normal), V::mul(V::to_float(number), V::set1(0x1p-10f)), normal);
  }
};

/// Group `group` of kGroupElements. kBits: width of the stored quants; kBias: what they are too high by.
template <class V, class TileShape, class ChunkReader, int kQuantBits, int kQuantBias, bool kMin = false, class Scales = HalfScales<V>,
          std::size_t kGroupElements = 32>
struct GroupView {
  using Tile = TileShape;
  static constexpr int kBits = kQuantBits;
  static constexpr int kBias = kQuantBias;
  static constexpr bool kHasMin = kMin;
  static constexpr std::size_t kElements = kGroupElements;
  static constexpr int kChunks = kGroupElements / 4;
  static constexpr std::size_t kGroups = Tile::kBlockElements / kElements;
  static constexpr std::size_t kQuantBytes = Tile::kQuantBytes / kGroups;

  const std::byte* scales;
  const std::byte* quants;

  GroupView(const std::byte* tile, std::size_t columns, std::size_t group, std::size_t sub) noexcept
      : scales(tile + scales_offset(group) + sub * V::kN * Scales::kRowBytes),
        quants(tile + Tile::quants_offset(columns) + group * kQuantBytes + sub * V::kBytes) {}

  typename V::F scale(int s) const noexcept { return Scales::load(scales + static_cast<std::size_t>(s) * V::kN * Scales::kRowBytes); }
  typename V::F min(int s) const noexcept {
    return Scales::load(scales + tiles::kF16Row + static_cast<std::size_t>(s) * V::kN * Scales::kRowBytes);
  }
  ChunkReader chunks() const noexcept {
    if constexpr (requires(ChunkReader reader) { reader.high; }) {
      return {{quants}, {quants + 4 * tiles::kChunkBytes}};
    } else {
      return {quants};
    }
  }

 private:
  /// A block has one row of scales (and minima), or one for each group.
  static constexpr std::size_t scales_offset(std::size_t group) noexcept {
    constexpr bool kScalePerGroup = Tile::kScaleBytes == kGroups * tiles::kRows * Scales::kRowBytes;
    return kScalePerGroup ? group * (Tile::kScaleBytes / kGroups) : group / kGroups * Tile::kScaleBytes;
  }
};

template <class V>
using Q8_0View = GroupView<V, tiles::Q8_0, ByteChunks<V>, 8, V::kByteBias>;
template <class V>
using Q4_0View = GroupView<V, tiles::Q4_0, NibbleChunks<V>, 4, 8>;
template <class V>
using Q4_1View = GroupView<V, tiles::Q4_1, NibbleChunks<V>, 4, 0, true>;
template <class V>
using Q5_0View = GroupView<V, tiles::Q5_0, FiveBitChunks<V>, 5, 16>;
template <class V>
using Q5_1View = GroupView<V, tiles::Q5_1, FiveBitChunks<V>, 5, 0, true>;
/// A bit b means 2 b - 1.
template <class V>
using Q1_0View = GroupView<V, tiles::Q1_0, FieldChunks<V, 1, 0, 1>, 2, 1>;
template <class V>
using Q2_0View = GroupView<V, tiles::Q2_0, FieldChunks<V, 2>, 2, 1>;
template <class V>
using Iq4_NLView = GroupView<V, tiles::Iq4_NL, TableChunks<V, kIq4Table>, 8, V::kByteBias>;
template <class V>
using Mxfp4View = GroupView<V, tiles::Mxfp4, TableChunks<V, kFp4Table>, 5, kFp4Bias, false, ExponentScales<V>>;
template <class V>
using Nvfp4View = GroupView<V, tiles::Nvfp4, TableChunks<V, kFp4Table>, 5, kFp4Bias, false, E4M3Scales<V>, 16>;

/// What the views of super-blocks share. kSub: elements of a sub-block.
template <class V, class TileShape, int kQuantBits, int kQuantBias, bool kMin, int kSub>
struct SuperView {
  using Tile = TileShape;
  static constexpr int kBits = kQuantBits;
  static constexpr int kBias = kQuantBias;
  static constexpr bool kHasMin = kMin;
  static constexpr int kSubElements = kSub;
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kQuantBytes = Tile::kQuantBytes;
  static constexpr std::size_t kPairBytes = kQuantBytes / (256 / kSub / 2);  ///< quants of two sub-blocks

  const std::byte* scales;
  const std::byte* quants;
  std::size_t sub;

  SuperView(const std::byte* tile, std::size_t columns, std::size_t block, std::size_t first_sub) noexcept
      : scales(tile + block * Tile::kScaleBytes),
        quants(tile + Tile::quants_offset(columns) + block * Tile::kQuantBytes + first_sub * V::kBytes),
        sub(first_sub) {}

  std::size_t row(int s) const noexcept { return (sub + static_cast<std::size_t>(s)) * V::kN; }
  typename V::F scale(int s) const noexcept { return V::load_f16(reinterpret_cast<const F16*>(scales) + row(s)); }
  typename V::F min(int s) const noexcept { return V::load_f16(reinterpret_cast<const F16*>(scales + tiles::kF16Row) + row(s)); }
  const std::byte* pair_quants(std::size_t p) const noexcept { return quants + p * kPairBytes; }
  /// The pair of bytes of each row in line p of scales that start at `offset`.
  const std::byte* pair_scales(std::size_t offset, std::size_t p, int s) const noexcept {
    return scales + offset + p * tiles::kPairRow + 2 * row(s);
  }
};

/// q4_K, q5_K: 6-bit scales and minima in bytes.
template <class V, class TileShape, class ChunkReader, int kQuantBits>
struct SixBitScaledView : SuperView<V, TileShape, kQuantBits, 0, true, 32> {
  using SuperView<V, TileShape, kQuantBits, 0, true, 32>::SuperView;

  typename V::I scale_pair(std::size_t p, int s) const noexcept { return V::pairs_from_u8(this->pair_scales(tiles::kSixBitScales, p, s)); }
  typename V::I min_pair(std::size_t p, int s) const noexcept { return V::pairs_from_u8(this->pair_scales(tiles::kSixBitMins, p, s)); }
  ChunkReader even_chunks(std::size_t p) const noexcept { return chunks(this->pair_quants(p)); }
  ChunkReader odd_chunks(std::size_t p) const noexcept { return chunks(this->pair_quants(p) + SixBitScaledView::kPairBytes / 2); }

 private:
  static ChunkReader chunks(const std::byte* quants) noexcept {
    if constexpr (kQuantBits == 5) {
      return {{quants}, {quants + 4 * tiles::kChunkBytes}};
    } else {
      return {quants};
    }
  }
};
template <class V>
using Q4_KView = SixBitScaledView<V, tiles::Q4_K, NibbleChunks<V>, 4>;
template <class V>
using Q5_KView = SixBitScaledView<V, tiles::Q5_K, FiveBitChunks<V>, 5>;

template <class V>
struct Q2_KView : SuperView<V, tiles::Q2_K, 2, 0, true, 16> {
  using SuperView<V, tiles::Q2_K, 2, 0, true, 16>::SuperView;

  typename V::I scale_pair(std::size_t p, int s) const noexcept { return V::and_i(both(p, s), V::set1_i(0x000F000F)); }
  typename V::I min_pair(std::size_t p, int s) const noexcept {
    return V::and_i(V::template shift_right<4>(both(p, s)), V::set1_i(0x000F000F));
  }
  FieldChunks<V, 2> even_chunks(std::size_t p) const noexcept { return {this->pair_quants(p)}; }
  FieldChunks<V, 2> odd_chunks(std::size_t p) const noexcept { return {this->pair_quants(p) + tiles::kChunkBytes}; }

 private:
  typename V::I both(std::size_t p, int s) const noexcept { return V::pairs_from_u8(this->pair_scales(2 * tiles::kF16Row, p, s)); }
};

template <class V>
struct Q3_KView : SuperView<V, tiles::Q3_K, 3, 4, false, 16> {
  using SuperView<V, tiles::Q3_K, 3, 4, false, 16>::SuperView;

  typename V::I scale_pair(std::size_t p, int s) const noexcept { return V::pairs_from_i8(this->pair_scales(tiles::kF16Row, p, s)); }
  ThreeBitChunks<V, 0> even_chunks(std::size_t p) const noexcept { return {{this->pair_quants(p)}, {high(p)}}; }
  ThreeBitChunks<V, 4> odd_chunks(std::size_t p) const noexcept { return {{this->pair_quants(p) + tiles::kChunkBytes}, {high(p)}}; }

 private:
  const std::byte* high(std::size_t p) const noexcept { return this->pair_quants(p) + 2 * tiles::kChunkBytes; }
};

template <class V>
struct Q6_KView : SuperView<V, tiles::Q6_K, 6, 32, false, 16> {
  using SuperView<V, tiles::Q6_K, 6, 32, false, 16>::SuperView;

  typename V::I scale_pair(std::size_t p, int s) const noexcept { return V::pairs_from_i8(this->pair_scales(tiles::kF16Row, p, s)); }
  SixBitChunks<V> even_chunks(std::size_t p) const noexcept { return chunks(this->pair_quants(p)); }
  SixBitChunks<V> odd_chunks(std::size_t p) const noexcept { return chunks(this->pair_quants(p) + 3 * tiles::kChunkBytes); }

 private:
  static SixBitChunks<V> chunks(const std::byte* quants) noexcept { return {{quants}, {quants + 2 * tiles::kChunkBytes}}; }
};

template <class V>
struct Iq4_XSView : SuperView<V, tiles::Iq4_XS, 8, V::kByteBias, false, 32> {
  using SuperView<V, tiles::Iq4_XS, 8, V::kByteBias, false, 32>::SuperView;

  typename V::I scale_pair(std::size_t p, int s) const noexcept { return V::pairs_from_i8(this->pair_scales(tiles::kF16Row, p, s)); }
  TableChunks<V, kIq4Table> even_chunks(std::size_t p) const noexcept { return {this->pair_quants(p)}; }
  TableChunks<V, kIq4Table> odd_chunks(std::size_t p) const noexcept { return {this->pair_quants(p) + 4 * tiles::kChunkBytes}; }
};

/// No scales inside the super-block: ones.
template <class V>
struct Tq2_0View : SuperView<V, tiles::Tq2_0, 2, 1, false, 32> {
  using SuperView<V, tiles::Tq2_0, 2, 1, false, 32>::SuperView;

  typename V::I scale_pair(std::size_t, int) const noexcept { return V::set1_i(0x00010001); }
  FieldChunks<V, 2> even_chunks(std::size_t p) const noexcept { return {this->pair_quants(p)}; }
  FieldChunks<V, 2> odd_chunks(std::size_t p) const noexcept { return {this->pair_quants(p) + 2 * tiles::kChunkBytes}; }
};

}  // namespace quench::generic
