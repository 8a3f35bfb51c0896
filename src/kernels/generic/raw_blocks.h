#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/generic/blocks.h"
#include "kernels/generic/grid_rows.h"

/// Formats that keep their file blocks, [block][16][block_bytes].
namespace quench::generic {

/// One file block of 16 rows, decoded to byte chunks of quant + kBias with its scales spread out: 4 KiB of quants, which stay in L1 while
/// all tokens pass over them.
template <class V, class RowType>
struct RawTile {
  alignas(64) std::byte quants[256 / 4 * tiles::kChunkBytes];
  alignas(64) F16 d[tiles::kRows];
  alignas(64) std::int16_t sub_scale[8][tiles::kRows][2];

  static const std::byte* row(const std::byte* tile, std::size_t block_bytes, std::size_t block, std::size_t r) noexcept {
    return tile + (block * tiles::kRows + r) * block_bytes;
  }

  void decode(const std::byte* tile, std::size_t block_bytes, std::size_t block) noexcept {
    for (std::size_t r = 0; r < tiles::kRows; ++r) {
      const RowType from(row(tile, block_bytes, block, r));
      d[r] = from.d();
      for (std::size_t i = 0; i < 8; ++i) {
        std::uint8_t biased[32];
        V::store_row(biased, V::add_rows(signed_quants<V>(from, i), V::row_of_all(RowType::kBias)));
        for (std::size_t c = 0; c < 8; ++c) std::memcpy(quants + (8 * i + c) * tiles::kChunkBytes + 4 * r, biased + 4 * c, 4);
        spread_scales(from.scales(i), i, r);
      }
    }
  }

 private:
  void spread_scales(HalfScalesOf32 scales, std::size_t i, std::size_t r) noexcept {
    const auto first = static_cast<std::int16_t>(scales.first);
    if constexpr (RowType::kSubElements == 16) {
      sub_scale[i][r][0] = first;
      sub_scale[i][r][1] = static_cast<std::int16_t>(scales.second);
    } else {
      sub_scale[i / 2][r][i % 2] = first;
    }
  }
};

/// A decoded super-block, for add_super_block.
template <class V, class RowType>
struct RawSuper {
  static constexpr int kBits = RowType::kBits;
  static constexpr int kBias = RowType::kBias;
  static constexpr bool kHasMin = false;
  static constexpr int kSubElements = RowType::kSubElements;

  const RawTile<V, RowType>& raw;
  std::size_t sub;

  RawSuper(const RawTile<V, RowType>& tile, std::size_t first_sub) noexcept : raw(tile), sub(first_sub) {}

  std::size_t row(int s) const noexcept { return (sub + static_cast<std::size_t>(s)) * V::kN; }
  typename V::F scale(int s) const noexcept { return V::mul(V::load_f16(raw.d + row(s)), V::set1(RowType::kFactor)); }
  typename V::I scale_pair(std::size_t p, int s) const noexcept {
    return V::pairs_from_i16(reinterpret_cast<const std::byte*>(raw.sub_scale[p][row(s)]));
  }
  ByteChunks<V> even_chunks(std::size_t p) const noexcept { return chunks(2 * p); }
  ByteChunks<V> odd_chunks(std::size_t p) const noexcept { return chunks(2 * p + 1); }

 private:
  ByteChunks<V> chunks(std::size_t j) const noexcept {
    return {raw.quants + j * (kSubElements / 4) * tiles::kChunkBytes + sub * V::kBytes};
  }
};

}  // namespace quench::generic
