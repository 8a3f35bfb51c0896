#pragma once

#include "kernels/packing/chunk.h"
#include "quant/block_layout.h"

/// Packers of the 256-element formats that have a layout of their own.
namespace quench {

/// The 6-bit scales and minima of q4_K and q5_K: 0..3 lie in the low six bits of bytes 0..3 and 4..7; 4..7 keep their low nibbles in bytes
/// 8..11 and their two high bits on top of the first eight bytes.
struct SixBitPairs {
  Bytes<8> scale{};
  Bytes<8> min{};
};
inline SixBitPairs split_six_bits(const Bytes<12>& in) noexcept {
  SixBitPairs out;
  for (std::size_t j = 0; j < 4; ++j) {
    out.scale[j] = static_cast<std::uint8_t>(in[j] & 63u);
    out.min[j] = static_cast<std::uint8_t>(in[j + 4] & 63u);
    out.scale[j + 4] = static_cast<std::uint8_t>((in[j + 8] & 15u) | ((unsigned{in[j]} >> 6) << 4));
    out.min[j + 4] = static_cast<std::uint8_t>((unsigned{in[j + 8]} >> 4) | ((unsigned{in[j + 4]} >> 6) << 4));
  }
  return out;
}
inline Bytes<12> join_six_bits(const SixBitPairs& in) noexcept {
  Bytes<12> out{};
  for (std::size_t j = 0; j < 4; ++j) {
    out[j] = static_cast<std::uint8_t>(in.scale[j] | ((unsigned{in.scale[j + 4]} >> 4) << 6));
    out[j + 4] = static_cast<std::uint8_t>(in.min[j] | ((unsigned{in.min[j + 4]} >> 4) << 6));
    out[j + 8] = static_cast<std::uint8_t>((in.scale[j + 4] & 15u) | ((in.min[j + 4] & 15u) << 4));
  }
  return out;
}

/// d, dmin, scales and minima of q4_K and q5_K, whose bytes lie alike.
template <class Block>
void pack_six_bit_scales(std::byte* scales, std::size_t row, const Block& in) noexcept {
  tiles::put_f16(scales, row, in.d);
  tiles::put_f16(scales + tiles::kF16Row, row, in.dmin);
  const SixBitPairs pairs = split_six_bits(in.scales);
  for (std::size_t j = 0; j < 8; ++j) {
    scales[tiles::kSixBitScales + tiles::pair_index(row, j)] = static_cast<std::byte>(pairs.scale[j]);
    scales[tiles::kSixBitMins + tiles::pair_index(row, j)] = static_cast<std::byte>(pairs.min[j]);
  }
}
template <class Block>
void unpack_six_bit_scales(const std::byte* scales, std::size_t row, Block& out) noexcept {
  out.d = tiles::get_f16(scales, row);
  out.dmin = tiles::get_f16(scales + tiles::kF16Row, row);
  SixBitPairs pairs;
  for (std::size_t j = 0; j < 8; ++j) {
    pairs.scale[j] = static_cast<std::uint8_t>(scales[tiles::kSixBitScales + tiles::pair_index(row, j)]);
    pairs.min[j] = static_cast<std::uint8_t>(scales[tiles::kSixBitMins + tiles::pair_index(row, j)]);
  }
  out.scales = join_six_bits(pairs);
}

struct Q4_KPacker : PackerOf<BlockQ4_K, tiles::Q4_K> {
  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ4_K>(file);
    pack_six_bit_scales(tiles::block_scales<Tile>(tile, block), row, in);
    Bytes<256> q;
    for (std::size_t run = 0; run < 4; ++run) tiles::split_nibbles(in.quants.data() + run * 32, 32, q.data() + run * 64);
    tiles::pack_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, q.data(), 256);
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ4_K out{};
    unpack_six_bit_scales(tiles::block_scales<Tile>(tile, block), row, out);
    Bytes<256> q;
    tiles::unpack_nibbles(tiles::block_quants<Tile>(tile, columns, block), row, q.data(), 256);
    for (std::size_t run = 0; run < 4; ++run) tiles::join_nibbles(q.data() + run * 64, 32, out.quants.data() + run * 32);
    store_block(out, file);
  }
};

struct Q5_KPacker : PackerOf<BlockQ5_K, tiles::Q5_K> {
  static constexpr std::size_t kGroupBytes = 5 * tiles::kChunkBytes;  ///< 32 k: four chunks of nibbles, one of fifth bits
  static constexpr std::size_t kHigh = 4 * tiles::kChunkBytes;

  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ5_K>(file);
    pack_six_bit_scales(tiles::block_scales<Tile>(tile, block), row, in);
    Bytes<256> q;
    Bytes<256> bits;
    for (std::size_t run = 0; run < 4; ++run) tiles::split_nibbles(in.quants.data() + run * 32, 32, q.data() + run * 64);
    tiles::split_lines<1>(in.high.data(), bits.data());
    std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    for (std::size_t g = 0; g < 8; ++g) {
      tiles::pack_nibbles(quants + g * kGroupBytes, row, q.data() + g * 32, 32);
      tiles::pack_fields<1>(quants + g * kGroupBytes + kHigh, row, bits.data() + g * 32);
    }
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ5_K out{};
    unpack_six_bit_scales(tiles::block_scales<Tile>(tile, block), row, out);
    Bytes<256> q;
    Bytes<256> bits;
    const std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    for (std::size_t g = 0; g < 8; ++g) {
      tiles::unpack_nibbles(quants + g * kGroupBytes, row, q.data() + g * 32, 32);
      tiles::unpack_fields<1>(quants + g * kGroupBytes + kHigh, row, bits.data() + g * 32);
    }
    for (std::size_t run = 0; run < 4; ++run) tiles::join_nibbles(q.data() + run * 64, 32, out.quants.data() + run * 32);
    tiles::join_lines<1>(bits.data(), out.high.data());
    store_block(out, file);
  }
};

struct Q6_KPacker : PackerOf<BlockQ6_K, tiles::Q6_K> {
  static constexpr std::size_t kGroupBytes = 3 * tiles::kChunkBytes;  ///< 16 k: two chunks of nibbles, one of high bits

  /// File: each half of 128 elements has 64 bytes of low nibbles and 32 bytes of high bits, whose pair p belongs to elements
  /// 32p..32p + 31 of the half.
  struct Parts {
    Bytes<256> low;
    Bytes<256> high;
  };
  static Parts split(const BlockQ6_K& in) noexcept {
    Parts parts;
    for (std::size_t half = 0; half < 2; ++half) {
      tiles::split_nibbles(in.low.data() + half * 64, 64, parts.low.data() + half * 128);
      for (std::size_t pair = 0; pair < 4; ++pair) {
        for (std::size_t i = 0; i < 32; ++i) {
          parts.high[half * 128 + pair * 32 + i] = static_cast<std::uint8_t>((in.high[half * 32 + i] >> (2 * pair)) & 3u);
        }
      }
    }
    return parts;
  }
  static void join(const Parts& parts, BlockQ6_K& out) noexcept {
    for (std::size_t half = 0; half < 2; ++half) {
      tiles::join_nibbles(parts.low.data() + half * 128, 64, out.low.data() + half * 64);
      for (std::size_t i = 0; i < 32; ++i) {
        const std::uint8_t* high = parts.high.data() + half * 128 + i;
        out.high[half * 32 + i] =
            static_cast<std::uint8_t>(high[0] | (unsigned{high[32]} << 2) | (unsigned{high[64]} << 4) | (unsigned{high[96]} << 6));
      }
    }
  }

  static void pack(std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, const std::byte* file) noexcept {
    const auto in = load_block<BlockQ6_K>(file);
    std::byte* scales = tiles::block_scales<Tile>(tile, block);
    tiles::put_f16(scales, row, in.d);
    for (std::size_t j = 0; j < 16; ++j) scales[tiles::kF16Row + tiles::pair_index(row, j)] = static_cast<std::byte>(in.scales[j]);
    std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    const Parts parts = split(in);
    for (std::size_t group = 0; group < 16; ++group) {
      std::byte* chunks = quants + group * kGroupBytes;
      tiles::pack_nibbles(chunks, row, parts.low.data() + group * 16, 16);
      tiles::pack_fields<2>(chunks + 2 * tiles::kChunkBytes, row, parts.high.data() + group * 16);
    }
  }
  static void unpack(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file) noexcept {
    BlockQ6_K out{};
    const std::byte* scales = tiles::block_scales<Tile>(tile, block);
    out.d = tiles::get_f16(scales, row);
    for (std::size_t j = 0; j < 16; ++j) out.scales[j] = static_cast<std::int8_t>(scales[tiles::kF16Row + tiles::pair_index(row, j)]);
    const std::byte* quants = tiles::block_quants<Tile>(tile, columns, block);
    Parts parts;
    for (std::size_t group = 0; group < 16; ++group) {
      const std::byte* chunks = quants + group * kGroupBytes;
      tiles::unpack_nibbles(chunks, row, parts.low.data() + group * 16, 16);
      tiles::unpack_fields<2>(chunks + 2 * tiles::kChunkBytes, row, parts.high.data() + group * 16);
    }
    join(parts, out);
    store_block(out, file);
  }
};

}  // namespace quench
