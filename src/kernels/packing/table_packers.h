#pragma once

#include "kernels/packing/block_packers.h"
#include "kernels/packing/chunk.h"
#include "quant/block_layout.h"

/// Packers of the formats whose nibbles index a table of values: the kernels look them up, packing leaves them as they are.
namespace quench {

struct Iq4_NLPacker : PackerOf<BlockIq4_NL, tiles::Iq4_NL> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockIq4_NL>(file);
    tiles::put_f16(tiles::block_scales<Tile>(tile, block), row, in.d);
    pack_block_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, in.quants);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    const F16 d = tiles::get_f16(tiles::block_scales<Tile>(tile, block), row);
    store_block(BlockIq4_NL{.d = d, .quants = unpack_block_nibbles(tiles::block_quants<Tile>(tile, columns, block), row)}, file);
  }
};

struct Mxfp4Packer : PackerOf<BlockMxfp4, tiles::Mxfp4> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockMxfp4>(file);
    tiles::block_scales<Tile>(tile, block)[row] = static_cast<std::byte>(in.exponent);
    pack_block_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, in.quants);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    const auto exponent = static_cast<std::uint8_t>(tiles::block_scales<Tile>(tile, block)[row]);
    store_block(BlockMxfp4{.exponent = exponent, .quants = unpack_block_nibbles(tiles::block_quants<Tile>(tile, columns, block), row)},
                file);
  }
};

struct Nvfp4Packer : PackerOf<BlockNvfp4, tiles::Nvfp4> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockNvfp4>(file);
    std::byte* scales = tiles::block_scales<Tile>(tile, block);
    Bytes<64> q;
    for (std::size_t g = 0; g < 4; ++g) {
      scales[g * tiles::kRows + row] = static_cast<std::byte>(in.scales[g]);
      tiles::split_nibbles(in.quants.data() + g * 8, 8, q.data() + g * 16);
    }
    tiles::pack_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, q.data(), 64);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockNvfp4 out{};
    const std::byte* scales = tiles::block_scales<Tile>(tile, block);
    Bytes<64> q;
    tiles::unpack_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, q.data(), 64);
    for (std::size_t g = 0; g < 4; ++g) {
      out.scales[g] = static_cast<std::uint8_t>(scales[g * tiles::kRows + row]);
      tiles::join_nibbles(q.data() + g * 16, 8, out.quants.data() + g * 8);
    }
    store_block(out, file);
  }
};

/// The 6-bit scales of iq4_xs become int8 with their offset of 32 taken off.
struct Iq4_XSPacker : PackerOf<BlockIq4_XS, tiles::Iq4_XS> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockIq4_XS>(file);
    std::byte* scales = tiles::block_scales<Tile>(tile, block);
    tiles::put_f16(scales, row, in.d);
    Bytes<256> q;
    for (std::size_t j = 0; j < 8; ++j) {
      const unsigned low = (unsigned{in.scales_low[j / 2]} >> (4 * (j % 2))) & 15u;
      const unsigned high = (unsigned{in.scales_high} >> (2 * j)) & 3u;
      scales[tiles::kF16Row + tiles::pair_index(row, j)] = static_cast<std::byte>((low | (high << 4)) - 32u);
      tiles::split_nibbles(in.quants.data() + j * 16, 16, q.data() + j * 32);
    }
    tiles::pack_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, q.data(), 256);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockIq4_XS out{};
    const std::byte* scales = tiles::block_scales<Tile>(tile, block);
    out.d = tiles::get_f16(scales, row);
    Bytes<256> q;
    tiles::unpack_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, q.data(), 256);
    for (std::size_t j = 0; j < 8; ++j) {
      const unsigned scale = (static_cast<unsigned>(scales[tiles::kF16Row + tiles::pair_index(row, j)]) + 32u) & 63u;
      out.scales_low[j / 2] = static_cast<std::uint8_t>(out.scales_low[j / 2] | ((scale & 15u) << (4 * (j % 2))));
      out.scales_high = static_cast<std::uint16_t>(out.scales_high | ((scale >> 4) << (2 * j)));
      tiles::join_nibbles(q.data() + j * 32, 16, out.quants.data() + j * 16);
    }
    store_block(out, file);
  }
};

}  // namespace quench
