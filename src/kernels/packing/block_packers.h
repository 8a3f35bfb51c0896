#pragma once

#include "kernels/packing/chunk.h"
#include "quant/block_layout.h"

/// Packers of the 32-element formats that have a layout of their own.
namespace quench {

/// 32 elements in 16 bytes of the file.
inline void pack_block_nibbles(std::byte* quants, std::size_t row, const Bytes<16>& file) noexcept {
  Bytes<32> q;
  tiles::split_nibbles(file.data(), 16, q.data());
  tiles::pack_nibbles(quants, row, q.data(), 32);
}
inline Bytes<16> unpack_block_nibbles(const std::byte* quants, std::size_t row) noexcept {
  Bytes<32> q;
  Bytes<16> file;
  tiles::unpack_nibbles(quants, row, q.data(), 32);
  tiles::join_nibbles(q.data(), 16, file.data());
  return file;
}

struct Q8_0Packer {
  using Tile = tiles::Q8_0;
  static constexpr std::size_t kBlockBytes = sizeof(BlockQ8_0);
  static constexpr std::size_t kBlockElements = 32;
  static std::size_t tile_bytes(std::size_t columns) noexcept { return Tile::bytes(columns); }

  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ8_0>(file);
    tiles::put_f16(tiles::block_scales<Tile>(tile, block), row, in.d);
    tiles::pack_bytes(tiles::block_quants<Tile>(tile, columns, block), row, in.quants.data(), 32);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ8_0 out{};
    out.d = tiles::get_f16(tiles::block_scales<Tile>(tile, block), row);
    tiles::unpack_bytes(tiles::block_quants<Tile>(tile, columns, block), row, out.quants.data(), 32);
    store_block(out, file);
  }
};

struct Q4_0Packer {
  using Tile = tiles::Q4_0;
  static constexpr std::size_t kBlockBytes = sizeof(BlockQ4_0);
  static constexpr std::size_t kBlockElements = 32;
  static std::size_t tile_bytes(std::size_t columns) noexcept { return Tile::bytes(columns); }

  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ4_0>(file);
    tiles::put_f16(tiles::block_scales<Tile>(tile, block), row, in.d);
    pack_block_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, in.quants);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ4_0 out{};
    out.d = tiles::get_f16(tiles::block_scales<Tile>(tile, block), row);
    out.quants = unpack_block_nibbles(tiles::block_quants<Tile>(tile, columns, block), row);
    store_block(out, file);
  }
};

struct Q4_1Packer {
  using Tile = tiles::Q4_1;
  static constexpr std::size_t kBlockBytes = sizeof(BlockQ4_1);
  static constexpr std::size_t kBlockElements = 32;
  static std::size_t tile_bytes(std::size_t columns) noexcept { return Tile::bytes(columns); }

  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ4_1>(file);
    std::byte* scales = tiles::block_scales<Tile>(tile, block);
    tiles::put_f16(scales, row, in.d);
    tiles::put_f16(scales + tiles::kF16Row, row, in.m);
    pack_block_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, in.quants);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ4_1 out{};
    const std::byte* scales = tiles::block_scales<Tile>(tile, block);
    out.d = tiles::get_f16(scales, row);
    out.m = tiles::get_f16(scales + tiles::kF16Row, row);
    out.quants = unpack_block_nibbles(tiles::block_quants<Tile>(tile, columns, block), row);
    store_block(out, file);
  }
};

struct Q5_0Packer {
  using Tile = tiles::Q5_0;
  static constexpr std::size_t kBlockBytes = sizeof(BlockQ5_0);
  static constexpr std::size_t kBlockElements = 32;
  static constexpr std::size_t kHighOffset = 4 * tiles::kChunkBytes;
  static std::size_t tile_bytes(std::size_t columns) noexcept { return Tile::bytes(columns); }

  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ5_0>(file);
    tiles::put_f16(tiles::block_scales<Tile>(tile, block), row, in.d);
    std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    pack_block_nibbles(quants, row, in.quants);
    Bytes<32> bits;
    for (std::size_t k = 0; k < 32; ++k) bits[k] = static_cast<std::uint8_t>((in.high[k / 8] >> (k % 8)) & 1u);
    tiles::pack_fields<1>(quants + kHighOffset, row, bits.data());
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ5_0 out{};
    out.d = tiles::get_f16(tiles::block_scales<Tile>(tile, block), row);
    const std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    out.quants = unpack_block_nibbles(quants, row);
    Bytes<32> bits;
    tiles::unpack_fields<1>(quants + kHighOffset, row, bits.data());
    for (std::size_t k = 0; k < 32; ++k) out.high[k / 8] = static_cast<std::uint8_t>(out.high[k / 8] | (unsigned{bits[k]} << (k % 8)));
    store_block(out, file);
  }
};

}  // namespace quench
