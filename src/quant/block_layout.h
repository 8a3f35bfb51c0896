#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/float16.h"

/// The quantized blocks as they lie in a GGUF file (little-endian). Source of the layouts: ggml's file format.
namespace quench {

template <std::size_t N>
using Bytes = std::array<std::uint8_t, N>;

// Blocks of 32, 64 or 128 elements. Two 4-bit quants a byte: low nibbles are the first half of each run, high ones the second.

struct BlockQ1_0 {  // 128 elements: d x (bit ? 1 : -1), bits in ascending order
  F16 d;
  Bytes<16> bits;
};
struct BlockQ2_0 {  // 64 elements: d x (q - 1), 2 bits each in ascending order
  F16 d;
  Bytes<16> quants;
};
struct BlockQ4_0 {  // d x (q - 8)
  F16 d;
  Bytes<16> quants;
};
struct BlockQ4_1 {  // d x q + m
  F16 d;
  F16 m;
  Bytes<16> quants;
};
struct BlockQ5_0 {  // d x (q - 16); bit i of `high` is the fifth bit of element i
  F16 d;
  Bytes<4> high;
  Bytes<16> quants;
};
struct BlockQ5_1 {  // d x q + m
  F16 d;
  F16 m;
  Bytes<4> high;
  Bytes<16> quants;
};
struct BlockQ8_0 {  // d x q
  F16 d;
  std::array<std::int8_t, 32> quants;
};
struct BlockIq4_NL {  // d x table[q]
  F16 d;
  Bytes<16> quants;
};
struct BlockMxfp4 {  // 32 elements: 2^(exponent - 128) x table[q]
  std::uint8_t exponent;
  Bytes<16> quants;
};
struct BlockNvfp4 {  // 64 elements, one unsigned E4M3 scale per 16; nibbles split in halves inside each 16
  Bytes<4> scales;
  Bytes<32> quants;
};

// Super-blocks of 256 elements.

struct BlockQ2_K {  // 16 sub-blocks: d x (scale & 15) x q - dmin x (scale >> 4)
  Bytes<16> scales;
  Bytes<64> quants;
  F16 d;
  F16 dmin;
};
struct BlockQ3_K {  // 16 sub-blocks: d x (scale - 32) x (q - 4); 6-bit scales
  Bytes<32> high;
  Bytes<64> quants;
  Bytes<12> scales;
  F16 d;
};
struct BlockQ4_K {  // 8 sub-blocks: d x scale x q - dmin x min; 6-bit scales and minima
  F16 d;
  F16 dmin;
  Bytes<12> scales;
  Bytes<128> quants;
};
struct BlockQ5_K {
  F16 d;
  F16 dmin;
  Bytes<12> scales;
  Bytes<32> high;
  Bytes<128> quants;
};
struct BlockQ6_K {  // 16 sub-blocks: d x scale x (q - 32)
  Bytes<128> low;
  Bytes<64> high;
  std::array<std::int8_t, 16> scales;
  F16 d;
};
struct BlockIq2_XXS {  // per 32: four grid bytes, then four 7-bit sign sets and a 4-bit scale
  F16 d;
  std::array<std::uint16_t, 32> words;
};
struct BlockIq2_XS {  // per 8: a 9-bit grid index and a 7-bit sign set
  F16 d;
  std::array<std::uint16_t, 32> words;
  Bytes<8> scales;
};
struct BlockIq2_S {  // per 8: a 10-bit grid index (2 bits in `high`) and a byte of signs
  F16 d;
  Bytes<32> low;
  Bytes<32> signs;
  Bytes<8> high;
  Bytes<8> scales;
};
struct BlockIq3_XXS {  // per 4: a grid byte; per 32: four 7-bit sign sets and a 4-bit scale
  F16 d;
  Bytes<64> indices;
  std::array<std::uint16_t, 16> words;
};
struct BlockIq3_S {  // per 4: a 9-bit grid index (1 bit in `high`)
  F16 d;
  Bytes<64> low;
  Bytes<8> high;
  Bytes<32> signs;
  Bytes<4> scales;
};
struct BlockIq1_S {  // per 32: 4 x 3 high bits of the grid index, a 3-bit scale, the sign of the offset
  F16 d;
  Bytes<32> low;
  std::array<std::uint16_t, 8> high;
};
struct BlockIq1_M {  // per 8: 3 high bits and the sign of the offset; the f16 scale is the top 4 bits of each scale word
  Bytes<32> low;
  Bytes<16> high;
  std::array<std::uint16_t, 4> scales;
};
struct BlockIq4_XS {  // 8 sub-blocks: d x (scale - 32) x table[q]
  F16 d;
  std::uint16_t scales_high;
  Bytes<4> scales_low;
  Bytes<128> quants;
};
struct BlockTq1_0 {  // five (`high`: four) ternary digits a byte, the byte being ceil(256 x digits / 243)
  Bytes<48> quants;
  Bytes<4> high;
  F16 d;
};
struct BlockTq2_0 {  // d x (q - 1)
  Bytes<64> quants;
  F16 d;
};

static_assert(sizeof(BlockQ1_0) == 18 && sizeof(BlockQ2_0) == 18 && sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockIq4_NL) == 18);
static_assert(sizeof(BlockMxfp4) == 17 && sizeof(BlockNvfp4) == 36);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176);
static_assert(sizeof(BlockQ6_K) == 210 && sizeof(BlockIq2_XXS) == 66 && sizeof(BlockIq2_XS) == 74 && sizeof(BlockIq2_S) == 82);
static_assert(sizeof(BlockIq3_XXS) == 98 && sizeof(BlockIq3_S) == 110 && sizeof(BlockIq1_S) == 50 && sizeof(BlockIq1_M) == 56);
static_assert(sizeof(BlockIq4_XS) == 136 && sizeof(BlockTq1_0) == 54 && sizeof(BlockTq2_0) == 66);

/// Blocks in a mapped file have no alignment: they are copied in and out.
template <class Block>
[[nodiscard]] inline Block load_block(const std::byte* bytes) noexcept {
  Block block;
  std::memcpy(&block, bytes, sizeof(Block));
  return block;
}

template <class Block>
inline void store_block(const Block& block, std::byte* bytes) noexcept {
  std::memcpy(bytes, &block, sizeof(Block));
}

}  // namespace quench
