#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packing/tiles.h"

/// Views of packed blocks as the dot products read them, for lanes V. Each is one block of all 16 rows; `sub` counts registers of V::kN
/// rows inside the tile.
namespace quench::generic {

/// Chunks of sub-tiles first_sub, first_sub + 1, ...: get<c>(s) is chunk c of the s-th of them.
template <class V>
struct ByteChunks {
  const std::byte* quants;
  template <int kChunk>
  [[gnu::always_inline]] typename V::B get(int s) const noexcept {
    return V::load_bytes(quants + kChunk * tiles::kChunkBytes + static_cast<std::size_t>(s) * V::kBytes);
  }
};

template <class V>
struct NibbleChunks {
  const std::byte* quants;
  template <int kChunk>
  [[gnu::always_inline]] typename V::B get(int s) const noexcept {
    const typename V::B both = V::load_bytes(quants + kChunk / 2 * tiles::kChunkBytes + static_cast<std::size_t>(s) * V::kBytes);
    return kChunk % 2 == 0 ? V::low_nibbles(both) : V::high_nibbles(both);
  }
};

/// q5_0: nibbles, and bit c of the fifth-bit chunk.
template <class V>
struct FiveBitChunks {
  const std::byte* quants;
  template <int kChunk>
  [[gnu::always_inline]] typename V::B get(int s) const noexcept {
    const typename V::B high = V::load_bytes(quants + 4 * tiles::kChunkBytes + static_cast<std::size_t>(s) * V::kBytes);
    return V::or_bytes(NibbleChunks<V>{quants}.template get<kChunk>(s), V::template shift_and_mask<4 - kChunk, 0x10>(high));
  }
};

/// q6_K, 16 k: nibbles, and bits 2c, 2c + 1 of the third chunk.
template <class V>
struct SixBitChunks {
  const std::byte* quants;
  template <int kChunk>
  [[gnu::always_inline]] typename V::B get(int s) const noexcept {
    const typename V::B high = V::load_bytes(quants + 2 * tiles::kChunkBytes + static_cast<std::size_t>(s) * V::kBytes);
    return V::or_bytes(NibbleChunks<V>{quants}.template get<kChunk>(s), V::template shift_and_mask<4 - 2 * kChunk, 0x30>(high));
  }
};

/// Formats of 32 elements. kBits: width of the stored quants; kBias: what the stored quants are too high by.
template <class V, class TileShape, class ChunkReader, int kQuantBits, int kQuantBias, bool kMin>
struct GroupView {
  using Tile = TileShape;
  static constexpr int kBits = kQuantBits;
  static constexpr int kBias = kQuantBias;
  static constexpr bool kHasMin = kMin;
  static constexpr int kChunks = 8;

  const std::byte* scales;
  const std::byte* quants;

  GroupView(const std::byte* tile, std::size_t columns, std::size_t block, std::size_t sub) noexcept
      : scales(tile + block * Tile::kScaleBytes + sub * V::kN * sizeof(F16)),
        quants(tile + Tile::quants_offset(columns) + block * Tile::kQuantBytes + sub * V::kBytes) {}

  typename V::F scale(int s) const noexcept {
    return V::load_f16(reinterpret_cast<const F16*>(scales) + static_cast<std::size_t>(s) * V::kN);
  }
  typename V::F min(int s) const noexcept {
    return V::load_f16(reinterpret_cast<const F16*>(scales + tiles::kF16Row) + static_cast<std::size_t>(s) * V::kN);
  }
  ChunkReader chunks() const noexcept { return {quants}; }
};

template <class V>
using Q8_0View = GroupView<V, tiles::Q8_0, ByteChunks<V>, 8, V::kByteBias, false>;
template <class V>
using Q4_0View = GroupView<V, tiles::Q4_0, NibbleChunks<V>, 4, 8, false>;
template <class V>
using Q4_1View = GroupView<V, tiles::Q4_1, NibbleChunks<V>, 4, 0, true>;
template <class V>
using Q5_0View = GroupView<V, tiles::Q5_0, FiveBitChunks<V>, 5, 16, false>;

/// Super-block formats: the two sub-blocks of pair p have their scales (and minima) side by side.
template <class V>
struct Q4_KView {
  using Tile = tiles::Q4_K;
  static constexpr int kBits = 4;
  static constexpr int kBias = 0;
  static constexpr bool kHasMin = true;
  static constexpr int kSubElements = 32;

  const std::byte* scales;
  const std::byte* quants;
  std::size_t sub;

  Q4_KView(const std::byte* tile, std::size_t columns, std::size_t block, std::size_t first_sub) noexcept
      : scales(tile + block * Tile::kScaleBytes),
        quants(tile + Tile::quants_offset(columns) + block * Tile::kQuantBytes + first_sub * V::kBytes),
        sub(first_sub) {}

  std::size_t row(int s) const noexcept { return (sub + static_cast<std::size_t>(s)) * V::kN; }
  typename V::F scale(int s) const noexcept { return V::load_f16(reinterpret_cast<const F16*>(scales) + row(s)); }
  typename V::F min(int s) const noexcept { return V::load_f16(reinterpret_cast<const F16*>(scales + tiles::kF16Row) + row(s)); }
  typename V::I scale_pair(std::size_t p, int s) const noexcept {
    return V::pairs_from_u8(scales + tiles::kQ4KScales + p * 2 * tiles::kRows + 2 * row(s));
  }
  typename V::I min_pair(std::size_t p, int s) const noexcept {
    return V::pairs_from_u8(scales + tiles::kQ4KMins + p * 2 * tiles::kRows + 2 * row(s));
  }
  NibbleChunks<V> chunks(std::size_t j) const noexcept { return {quants + j * 4 * tiles::kChunkBytes}; }
};

template <class V>
struct Q6_KView {
  using Tile = tiles::Q6_K;
  static constexpr int kBits = 6;
  static constexpr int kBias = 32;
  static constexpr bool kHasMin = false;
  static constexpr int kSubElements = 16;

  const std::byte* scales;
  const std::byte* quants;
  std::size_t sub;

  Q6_KView(const std::byte* tile, std::size_t columns, std::size_t block, std::size_t first_sub) noexcept
      : scales(tile + block * Tile::kScaleBytes),
        quants(tile + Tile::quants_offset(columns) + block * Tile::kQuantBytes + first_sub * V::kBytes),
        sub(first_sub) {}

  std::size_t row(int s) const noexcept { return (sub + static_cast<std::size_t>(s)) * V::kN; }
  typename V::F scale(int s) const noexcept { return V::load_f16(reinterpret_cast<const F16*>(scales) + row(s)); }
  typename V::I scale_pair(std::size_t p, int s) const noexcept {
    return V::pairs_from_i8(scales + tiles::kQ6KScales + p * 2 * tiles::kRows + 2 * row(s));
  }
  SixBitChunks<V> chunks(std::size_t j) const noexcept { return {quants + j * 3 * tiles::kChunkBytes}; }
};

}  // namespace quench::generic
