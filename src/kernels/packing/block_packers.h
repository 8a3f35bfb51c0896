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

struct Q8_0Packer : PackerOf<BlockQ8_0, tiles::Q8_0> {
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

struct Q4_0Packer : PackerOf<BlockQ4_0, tiles::Q4_0> {
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

struct Q4_1Packer : PackerOf<BlockQ4_1, tiles::Q4_1> {
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

/// 32 elements in 16 bytes of nibbles and 4 bytes of fifth bits: the five chunks of q5_0 and q5_1.
struct FiveBits {
  Bytes<4> high;
  Bytes<16> quants;
};
inline constexpr std::size_t kFifthBits = 4 * tiles::kChunkBytes;  ///< offset of their chunk

inline void pack_five_bits(std::byte* quants, std::size_t row, const FiveBits& file) noexcept {
  pack_block_nibbles(quants, row, file.quants);
  Bytes<32> bits;
  tiles::split_fields<1>(file.high.data(), 32, bits.data());
  tiles::pack_fields<1>(quants + kFifthBits, row, bits.data());
}
inline FiveBits unpack_five_bits(const std::byte* quants, std::size_t row) noexcept {
  FiveBits file{.high = {}, .quants = unpack_block_nibbles(quants, row)};
  Bytes<32> bits;
  tiles::unpack_fields<1>(quants + kFifthBits, row, bits.data());
  tiles::join_fields<1>(bits.data(), 32, file.high.data());
  return file;
}

struct Q5_0Packer : PackerOf<BlockQ5_0, tiles::Q5_0> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ5_0>(file);
    tiles::put_f16(tiles::block_scales<Tile>(tile, block), row, in.d);
    pack_five_bits(tiles::block_quants<Tile>(tile, columns, block), row, {in.high, in.quants});
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    const FiveBits bits = unpack_five_bits(tiles::block_quants<Tile>(tile, columns, block), row);
    const F16 d = tiles::get_f16(tiles::block_scales<Tile>(tile, block), row);
    store_block(BlockQ5_0{.d = d, .high = bits.high, .quants = bits.quants}, file);
  }
};

struct Q5_1Packer : PackerOf<BlockQ5_1, tiles::Q5_1> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ5_1>(file);
    std::byte* scales = tiles::block_scales<Tile>(tile, block);
    tiles::put_f16(scales, row, in.d);
    tiles::put_f16(scales + tiles::kF16Row, row, in.m);
    pack_five_bits(tiles::block_quants<Tile>(tile, columns, block), row, {in.high, in.quants});
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    const FiveBits bits = unpack_five_bits(tiles::block_quants<Tile>(tile, columns, block), row);
    const std::byte* scales = tiles::block_scales<Tile>(tile, block);
    const F16 d = tiles::get_f16(scales, row);
    const F16 m = tiles::get_f16(scales + tiles::kF16Row, row);
    store_block(BlockQ5_1{.d = d, .m = m, .high = bits.high, .quants = bits.quants}, file);
  }
};

}  // namespace quench
