#pragma once

#include "kernels/packing/chunk.h"
#include "quant/block_layout.h"

/// Packers of the formats of one to three bits.
namespace quench {

/// 256 elements of 2 bits, 16 in each chunk.
inline void pack_pairs_of_bits(std::byte* quants, std::size_t row, const Bytes<256>& q) noexcept {
  for (std::size_t c = 0; c < 16; ++c) tiles::pack_fields<2>(quants + c * tiles::kChunkBytes, row, q.data() + c * 16);
}
inline void unpack_pairs_of_bits(const std::byte* quants, std::size_t row, Bytes<256>& q) noexcept {
  for (std::size_t c = 0; c < 16; ++c) tiles::unpack_fields<2>(quants + c * tiles::kChunkBytes, row, q.data() + c * 16);
}

struct Q1_0Packer : PackerOf<BlockQ1_0, tiles::Q1_0> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ1_0>(file);
    tiles::put_f16(tiles::block_scales<Tile>(tile, block), row, in.d);
    std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    Bytes<128> q;
    tiles::split_fields<1>(in.bits.data(), 128, q.data());
    for (std::size_t c = 0; c < 4; ++c) tiles::pack_fields<1>(quants + c * tiles::kChunkBytes, row, q.data() + c * 32);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ1_0 out{};
    out.d = tiles::get_f16(tiles::block_scales<Tile>(tile, block), row);
    const std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    Bytes<128> q;
    for (std::size_t c = 0; c < 4; ++c) tiles::unpack_fields<1>(quants + c * tiles::kChunkBytes, row, q.data() + c * 32);
    tiles::join_fields<1>(q.data(), 128, out.bits.data());
    store_block(out, file);
  }
};

struct Q2_0Packer : PackerOf<BlockQ2_0, tiles::Q2_0> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ2_0>(file);
    tiles::put_f16(tiles::block_scales<Tile>(tile, block), row, in.d);
    std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    Bytes<64> q;
    tiles::split_fields<2>(in.quants.data(), 64, q.data());
    for (std::size_t c = 0; c < 4; ++c) tiles::pack_fields<2>(quants + c * tiles::kChunkBytes, row, q.data() + c * 16);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ2_0 out{};
    out.d = tiles::get_f16(tiles::block_scales<Tile>(tile, block), row);
    const std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    Bytes<64> q;
    for (std::size_t c = 0; c < 4; ++c) tiles::unpack_fields<2>(quants + c * tiles::kChunkBytes, row, q.data() + c * 16);
    tiles::join_fields<2>(q.data(), 64, out.quants.data());
    store_block(out, file);
  }
};

struct Tq2_0Packer : PackerOf<BlockTq2_0, tiles::Tq2_0> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockTq2_0>(file);
    tiles::put_f16(tiles::block_scales<Tile>(tile, block), row, in.d);
    Bytes<256> q;
    tiles::split_lines<2>(in.quants.data(), q.data());
    pack_pairs_of_bits(tiles::block_quants<Tile>(tile, columns, block), row, q);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockTq2_0 out{};
    out.d = tiles::get_f16(tiles::block_scales<Tile>(tile, block), row);
    Bytes<256> q;
    unpack_pairs_of_bits(tiles::block_quants<Tile>(tile, columns, block), row, q);
    tiles::join_lines<2>(q.data(), out.quants.data());
    store_block(out, file);
  }
};

struct Q2_KPacker : PackerOf<BlockQ2_K, tiles::Q2_K> {
  static constexpr std::size_t kPairs = 2 * tiles::kF16Row;  ///< offset of the scales

  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ2_K>(file);
    std::byte* scales = tiles::block_scales<Tile>(tile, block);
    tiles::put_f16(scales, row, in.d);
    tiles::put_f16(scales + tiles::kF16Row, row, in.dmin);
    for (std::size_t j = 0; j < 16; ++j) scales[kPairs + tiles::pair_index(row, j)] = static_cast<std::byte>(in.scales[j]);
    Bytes<256> q;
    tiles::split_lines<2>(in.quants.data(), q.data());
    pack_pairs_of_bits(tiles::block_quants<Tile>(tile, columns, block), row, q);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ2_K out{};
    const std::byte* scales = tiles::block_scales<Tile>(tile, block);
    out.d = tiles::get_f16(scales, row);
    out.dmin = tiles::get_f16(scales + tiles::kF16Row, row);
    for (std::size_t j = 0; j < 16; ++j) out.scales[j] = static_cast<std::uint8_t>(scales[kPairs + tiles::pair_index(row, j)]);
    Bytes<256> q;
    unpack_pairs_of_bits(tiles::block_quants<Tile>(tile, columns, block), row, q);
    tiles::join_lines<2>(q.data(), out.quants.data());
    store_block(out, file);
  }
};

/// The 6-bit scales of q3_K become int8 with their offset of 32 taken off: sub-block j keeps its low nibble in byte j % 8 of the file's
/// scales, its two high bits in byte 8 + j % 4.
struct Q3_KPacker : PackerOf<BlockQ3_K, tiles::Q3_K> {
  static constexpr std::size_t kGroupBytes = 3 * tiles::kChunkBytes;  ///< 32 k: two chunks of low bits, one of high bits
  static constexpr std::size_t kHigh = 2 * tiles::kChunkBytes;

  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ3_K>(file);
    std::byte* scales = tiles::block_scales<Tile>(tile, block);
    tiles::put_f16(scales, row, in.d);
    for (std::size_t j = 0; j < 16; ++j) {
      const unsigned low = (unsigned{in.scales[j % 8]} >> (4 * (j / 8))) & 15u;
      const unsigned high = (unsigned{in.scales[8 + j % 4]} >> (2 * (j / 4))) & 3u;
      scales[tiles::kF16Row + tiles::pair_index(row, j)] = static_cast<std::byte>((low | (high << 4)) - 32u);
    }
    Bytes<256> q;
    Bytes<256> bits;
    tiles::split_lines<2>(in.quants.data(), q.data());
    tiles::split_lines<1>(in.high.data(), bits.data());
    std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    for (std::size_t g = 0; g < 8; ++g) {
      std::byte* chunks = quants + g * kGroupBytes;
      tiles::pack_fields<2>(chunks, row, q.data() + g * 32);
      tiles::pack_fields<2>(chunks + tiles::kChunkBytes, row, q.data() + g * 32 + 16);
      tiles::pack_fields<1>(chunks + kHigh, row, bits.data() + g * 32);
    }
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ3_K out{};
    const std::byte* scales = tiles::block_scales<Tile>(tile, block);
    out.d = tiles::get_f16(scales, row);
    for (std::size_t j = 0; j < 16; ++j) {
      const unsigned scale = (static_cast<unsigned>(scales[tiles::kF16Row + tiles::pair_index(row, j)]) + 32u) & 63u;
      out.scales[j % 8] = static_cast<std::uint8_t>(out.scales[j % 8] | ((scale & 15u) << (4 * (j / 8))));
      out.scales[8 + j % 4] = static_cast<std::uint8_t>(out.scales[8 + j % 4] | ((scale >> 4) << (2 * (j / 4))));
    }
    Bytes<256> q;
    Bytes<256> bits;
    const std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    for (std::size_t g = 0; g < 8; ++g) {
      const std::byte* chunks = quants + g * kGroupBytes;
      tiles::unpack_fields<2>(chunks, row, q.data() + g * 32);
      tiles::unpack_fields<2>(chunks + tiles::kChunkBytes, row, q.data() + g * 32 + 16);
      tiles::unpack_fields<1>(chunks + kHigh, row, bits.data() + g * 32);
    }
    tiles::join_lines<2>(q.data(), out.quants.data());
    tiles::join_lines<1>(bits.data(), out.high.data());
    store_block(out, file);
  }
};

}  // namespace quench
