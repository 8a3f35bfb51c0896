#pragma once

#include <cstddef>

#include "base/float16.h"

/// Where things lie inside a packed tile of 16 rows: shared by packing and by the kernels of every instruction set. Drawn in
/// docs/weights.md.
namespace quench::tiles {

inline constexpr std::size_t kRows = 16;
/// A chunk holds 4 consecutive k of 16 rows, one byte each: byte 4 * row + (k % 4).
inline constexpr std::size_t kChunkBytes = 64;
inline constexpr std::size_t kChunkElements = 4;

/// All blocks' scales first, then, 64-byte aligned, all blocks' quants.
template <std::size_t kElements, std::size_t kScales, std::size_t kQuants>
struct Shape {
  static constexpr std::size_t kBlockElements = kElements;
  static constexpr std::size_t kScaleBytes = kScales;  ///< per block of 16 rows
  static constexpr std::size_t kQuantBytes = kQuants;  ///< per block of 16 rows

  static constexpr std::size_t quants_offset(std::size_t columns) noexcept { return (columns / kElements * kScales + 63) / 64 * 64; }
  static constexpr std::size_t bytes(std::size_t columns) noexcept { return quants_offset(columns) + columns / kElements * kQuants; }
};

inline constexpr std::size_t kF16Row = kRows * sizeof(F16);  ///< one f16 for each of the 16 rows

// Formats of blocks.

/// d[16]; 8 chunks of quants with the sign bit flipped.
using Q8_0 = Shape<32, kF16Row, 8 * kChunkBytes>;
/// d[16]; 4 chunks: low nibbles are k 8c..8c+3, high nibbles k 8c+4..8c+7.
using Q4_0 = Shape<32, kF16Row, 4 * kChunkBytes>;
/// d[16], m[16]; quants as q4_0.
using Q4_1 = Shape<32, 2 * kF16Row, 4 * kChunkBytes>;
/// d[16]; quants as q4_0, then a chunk of fifth bits: bit g of byte 4r + j belongs to row r, k = 4g + j.
using Q5_0 = Shape<32, kF16Row, 5 * kChunkBytes>;
/// d[16], m[16]; quants as q5_0.
using Q5_1 = Shape<32, 2 * kF16Row, 5 * kChunkBytes>;
/// d[16]; per 32 k a chunk of bits: bit g of byte 4r + j belongs to row r, k = 4g + j.
using Q1_0 = Shape<128, kF16Row, 4 * kChunkBytes>;
/// d[16]; per 16 k a chunk of pairs of bits: bits 2g, 2g + 1 of byte 4r + j belong to row r, k = 4g + j.
using Q2_0 = Shape<64, kF16Row, 4 * kChunkBytes>;
/// d[16]; quants as q4_0.
using Iq4_NL = Q4_0;
/// exponent[16], a byte each; quants as q4_0.
using Mxfp4 = Shape<32, kRows, 4 * kChunkBytes>;
/// scales [4][16], a byte each; quants as q4_0.
using Nvfp4 = Shape<64, 4 * kRows, 8 * kChunkBytes>;

// Formats of super-blocks. The scales of sub-blocks 2p and 2p + 1 lie side by side: [p][16][2], a byte each.

inline constexpr std::size_t kPairRow = 2 * kRows;  ///< the scales of two sub-blocks

/// d[16], dmin[16], scales [4][16][2], minima [4][16][2]; 32 chunks of nibbles.
using Q4_K = Shape<256, 2 * kF16Row + 2 * 4 * kPairRow, 32 * kChunkBytes>;
inline constexpr std::size_t kSixBitScales = 2 * kF16Row;                 ///< offset of the scales inside a block's scale bytes
inline constexpr std::size_t kSixBitMins = kSixBitScales + 4 * kPairRow;  ///< and of the minima
/// Scales as q4_K; per 32 k the 5 chunks of q5_0.
using Q5_K = Shape<256, Q4_K::kScaleBytes, 8 * 5 * kChunkBytes>;
/// d[16], dmin[16], scales [8][16][2] (low nibble: scale, high nibble: minimum); per 16 k a chunk of pairs of bits as q2_0.
using Q2_K = Shape<256, 2 * kF16Row + 8 * kPairRow, 16 * kChunkBytes>;
/// d[16], scales [8][16][2] (int8); per 32 k two chunks of pairs of bits as q2_0, then a chunk of third bits as q1_0.
using Q3_K = Shape<256, kF16Row + 8 * kPairRow, 8 * 3 * kChunkBytes>;
/// d[16], scales [8][16][2] (int8); per 16 k two chunks of low nibbles, then a chunk of high bits: bits 2g, 2g + 1 of byte 4r + j belong
/// to row r, k = 4g + j.
using Q6_K = Shape<256, kF16Row + 8 * kPairRow, 16 * 3 * kChunkBytes>;
/// d[16], scales [4][16][2] (int8); 32 chunks of nibbles.
using Iq4_XS = Shape<256, kF16Row + 4 * kPairRow, 32 * kChunkBytes>;
/// d[16]; per 16 k a chunk of pairs of bits as q2_0.
using Tq2_0 = Shape<256, kF16Row, 16 * kChunkBytes>;

}  // namespace quench::tiles
