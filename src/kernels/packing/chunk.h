#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/float16.h"
#include "kernels/packing/tiles.h"

/// What the packers share: one row's quants move in words of 4 elements, the row's share of a chunk. `q` holds one element a byte.
namespace quench::tiles {

inline std::uint32_t load_word(const void* p) noexcept {
  std::uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}
inline void store_word(void* p, std::uint32_t word) noexcept { std::memcpy(p, &word, sizeof(word)); }

/// Byte chunks with the sign bit flipped.
inline void pack_bytes(std::byte* quants, std::size_t row, const std::int8_t* q, std::size_t n) noexcept {
  for (std::size_t c = 0; c < n / 4; ++c) store_word(quants + c * kChunkBytes + 4 * row, load_word(q + 4 * c) ^ 0x80808080u);
}
inline void unpack_bytes(const std::byte* quants, std::size_t row, std::int8_t* q, std::size_t n) noexcept {
  for (std::size_t c = 0; c < n / 4; ++c) store_word(q + 4 * c, load_word(quants + c * kChunkBytes + 4 * row) ^ 0x80808080u);
}

/// Nibble chunks: k 8c..8c+3 low, 8c+4..8c+7 high.
inline void pack_nibbles(std::byte* quants, std::size_t row, const std::uint8_t* q, std::size_t n) noexcept {
  for (std::size_t c = 0; c < n / 8; ++c) {
    store_word(quants + c * kChunkBytes + 4 * row, load_word(q + 8 * c) | (load_word(q + 8 * c + 4) << 4));
  }
}
inline void unpack_nibbles(const std::byte* quants, std::size_t row, std::uint8_t* q, std::size_t n) noexcept {
  for (std::size_t c = 0; c < n / 8; ++c) {
    const std::uint32_t word = load_word(quants + c * kChunkBytes + 4 * row);
    store_word(q + 8 * c, word & 0x0F0F0F0Fu);
    store_word(q + 8 * c + 4, (word >> 4) & 0x0F0F0F0Fu);
  }
}

/// One chunk of kWidth-bit fields: field g of byte 4 * row + j is k = 4g + j.
template <unsigned kWidth>
void pack_fields(std::byte* chunk, std::size_t row, const std::uint8_t* q) noexcept {
  std::uint32_t word = 0;
  for (unsigned g = 0; g < 8 / kWidth; ++g) word |= load_word(q + 4 * g) << (kWidth * g);
  store_word(chunk + 4 * row, word);
}
template <unsigned kWidth>
void unpack_fields(const std::byte* chunk, std::size_t row, std::uint8_t* q) noexcept {
  constexpr std::uint32_t kMask = ((1u << kWidth) - 1u) * 0x01010101u;
  const std::uint32_t word = load_word(chunk + 4 * row);
  for (unsigned g = 0; g < 8 / kWidth; ++g) store_word(q + 4 * g, (word >> (kWidth * g)) & kMask);
}

/// Runs of 2n elements in n bytes of a file: the low nibbles, then the high ones.
inline void split_nibbles(const std::uint8_t* bytes, std::size_t n, std::uint8_t* q) noexcept {
  for (std::size_t i = 0; i < n; ++i) q[i] = static_cast<std::uint8_t>(bytes[i] & 15u);
  for (std::size_t i = 0; i < n; ++i) q[n + i] = static_cast<std::uint8_t>(bytes[i] >> 4);
}
inline void join_nibbles(const std::uint8_t* q, std::size_t n, std::uint8_t* bytes) noexcept {
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::uint8_t>(q[i] | (unsigned{q[n + i]} << 4));
}

/// 256 elements as the K formats hold fields of kWidth bits: element 32 * line + l is field line % f of byte 32 * (line / f) + l, with
/// f = 8 / kWidth fields a byte.
template <unsigned kWidth>
void split_lines(const std::uint8_t* bytes, std::uint8_t* q) noexcept {
  constexpr std::size_t kFields = 8 / kWidth;
  constexpr unsigned kMask = (1u << kWidth) - 1u;
  for (std::size_t line = 0; line < 8; ++line) {
    for (std::size_t l = 0; l < 32; ++l) {
      q[32 * line + l] = static_cast<std::uint8_t>((bytes[32 * (line / kFields) + l] >> (kWidth * (line % kFields))) & kMask);
    }
  }
}
/// Into zero bytes.
template <unsigned kWidth>
void join_lines(const std::uint8_t* q, std::uint8_t* bytes) noexcept {
  constexpr std::size_t kFields = 8 / kWidth;
  for (std::size_t line = 0; line < 8; ++line) {
    for (std::size_t l = 0; l < 32; ++l) {
      auto& byte = bytes[32 * (line / kFields) + l];
      byte = static_cast<std::uint8_t>(byte | (unsigned{q[32 * line + l]} << (kWidth * (line % kFields))));
    }
  }
}

/// The lowest four fields of kWidth bits, a byte each.
template <unsigned kWidth>
std::uint32_t spread_fields(std::uint32_t bits) noexcept {
  if constexpr (kWidth == 1) {
    return ((bits & 15u) * 0x00204081u) & 0x01010101u;  // bit f of the copy that is shifted by 7f stands at 8f
  } else {
    constexpr std::uint32_t kMask = (1u << kWidth) - 1u;
    std::uint32_t word = 0;
    for (unsigned f = 0; f < 4; ++f) word |= ((bits >> (kWidth * f)) & kMask) << (8 * f);
    return word;
  }
}
/// n elements, a multiple of 4, as fields of kWidth bits in ascending order.
template <unsigned kWidth>
void split_fields(const std::uint8_t* bytes, std::size_t n, std::uint8_t* q) noexcept {
  for (std::size_t i = 0; i < n; i += 4) {
    const std::size_t bit = i * kWidth;
    store_word(q + i, spread_fields<kWidth>(std::uint32_t{bytes[bit / 8]} >> (bit % 8)));
  }
}
/// Into zero bytes.
template <unsigned kWidth>
void join_fields(const std::uint8_t* q, std::size_t n, std::uint8_t* bytes) noexcept {
  constexpr std::size_t kFields = 8 / kWidth;
  for (std::size_t i = 0; i < n; ++i) {
    bytes[i / kFields] = static_cast<std::uint8_t>(bytes[i / kFields] | (unsigned{q[i]} << (kWidth * (i % kFields))));
  }
}

inline void put_f16(std::byte* row_of_16, std::size_t row, F16 value) noexcept {
  std::memcpy(row_of_16 + row * sizeof(F16), &value, sizeof(F16));
}
inline F16 get_f16(const std::byte* row_of_16, std::size_t row) noexcept {
  F16 value;
  std::memcpy(&value, row_of_16 + row * sizeof(F16), sizeof(F16));
  return value;
}

/// Start of a block's scales and of its quants in a tile of shape `Tile`.
template <class Tile, class Byte>
Byte* block_scales(Byte* tile, std::size_t block) noexcept {
  return tile + block * Tile::kScaleBytes;
}
template <class Tile, class Byte>
Byte* block_quants(Byte* tile, std::size_t columns, std::size_t block) noexcept {
  return tile + Tile::quants_offset(columns) + block * Tile::kQuantBytes;
}

/// Byte of sub-block j, row r in scales stored [j / 2][16][2].
constexpr std::size_t pair_index(std::size_t row, std::size_t j) noexcept { return j / 2 * kPairRow + row * 2 + j % 2; }

}  // namespace quench::tiles

namespace quench {

/// What every packer of a block format has; pack and unpack move one block of one row.
template <class Block, class TileShape>
struct PackerOf {
  using Tile = TileShape;
  static constexpr std::size_t kBlockBytes = sizeof(Block);
  static constexpr std::size_t kBlockElements = Tile::kBlockElements;
  static std::size_t tile_bytes(std::size_t columns) noexcept { return Tile::bytes(columns); }
};

}  // namespace quench
