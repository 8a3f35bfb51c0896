#pragma once

#include <cstddef>
#include <utility>

#include "kernels/generic/blocks.h"
#include "kernels/generic/repeat.h"
#include "kernels/generic/tile_pair.h"
#include "kernels/packing/tiles.h"
#include "kernels/table.h"

/// For many tokens, 256 k of 16 rows are unpacked once, into what the dot product takes (an operand of V), and stay in L1 while all tokens
/// pass over them: a register of q6_K takes 5 instructions to unpack, and 10 to multiply with 4 tokens.
namespace quench::generic {

inline constexpr std::size_t kSlabElements = 256;

/// kTiles tiles side by side: for each chunk the registers of the first, then those of the second.
template <class V, int kBits, std::size_t kTiles>
struct OperandChunks {
  static constexpr std::size_t kBytes = V::template kOperandBytes<kBits>;
  static constexpr std::size_t kTileBytes = tiles::kRows / V::kN * kBytes;
  static constexpr std::size_t kChunkBytes = kTiles * kTileBytes;

  const std::byte* operands;
  template <int kChunk>
  [[gnu::always_inline]] auto get(int s) const noexcept {
    return V::template load_operand<kBits>(operands + kChunk * kChunkBytes + static_cast<std::size_t>(s) * kBytes);
  }
};

template <class V, int kBits, std::size_t kTiles>
struct Slab {
  using Chunks = OperandChunks<V, kBits, kTiles>;
  static constexpr std::size_t kSubTiles = tiles::kRows / V::kN;
  alignas(64) std::byte operands[kSlabElements / tiles::kChunkElements * Chunks::kChunkBytes];

  [[nodiscard]] const std::byte* at(std::size_t element, std::size_t sub) const noexcept { return operands + offset(element, sub); }

  /// Blocks [first, first + count) of a job's tile, all rows of it, as tile `place` of the slab.
  template <class View>
  void unpack(const LinearTile& job, std::size_t place, std::size_t first, std::size_t count) noexcept {
    for (std::size_t b = 0; b < count; ++b) {
      for (std::size_t sub = 0; sub < kSubTiles; ++sub) {
        const View view(job.tile, job.columns, first + b, sub);
        const std::size_t registers_before = place * kSubTiles + sub;
        if constexpr (View::kElements == kSlabElements) {
          constexpr std::size_t kSub = View::kSubElements;
          for (std::size_t p = 0; p < kSlabElements / kSub / 2; ++p) {
            store<kSub>(view.even_chunks(p), 2 * p * kSub, registers_before);
            store<kSub>(view.odd_chunks(p), (2 * p + 1) * kSub, registers_before);
          }
        } else {
          store<View::kElements>(view.chunks(), b * View::kElements, registers_before);
        }
      }
    }
  }

 private:
  static constexpr std::size_t offset(std::size_t element, std::size_t sub) noexcept {
    return element / tiles::kChunkElements * Chunks::kChunkBytes + sub * Chunks::kBytes;
  }
  template <std::size_t kElements, class Reader>
  [[gnu::always_inline]] void store(const Reader& chunks, std::size_t element, std::size_t sub) noexcept {
    repeat<static_cast<int>(kElements / tiles::kChunkElements)>([&](auto c) __attribute__((always_inline)) {
      V::template store_operand<kBits>(operands + offset(element, sub) + c * Chunks::kChunkBytes, chunks.template get<c>(0));
    });
  }
};

template <class V, class View>
using SlabOf = Slab<V, View::kBits, kIsTilePair<View> ? 2 : 1>;

/// A block of a packed tile, or of two, whose quants are read from a slab, and its scales from the tile.
template <class V, class View>
struct Unpacked : View {
  using Chunks = typename SlabOf<V, View>::Chunks;
  const std::byte* operands;

  Unpacked(const View& view, const std::byte* block_operands) noexcept : View(view), operands(block_operands) {}

  Chunks chunks() const noexcept { return {operands}; }
  Chunks even_chunks(std::size_t p) const noexcept { return sub_block(2 * p); }
  Chunks odd_chunks(std::size_t p) const noexcept { return sub_block(2 * p + 1); }

 private:
  Chunks sub_block(std::size_t j) const noexcept {
    return {operands + j * (View::kSubElements / tiles::kChunkElements) * Chunks::kChunkBytes};
  }
};

template <class View>
inline constexpr int kInstructionsToUnpack = [] {
  if constexpr (requires(const View& view) { view.chunks(); }) {
    return decltype(std::declval<const View&>().chunks())::kInstructions;
  } else {
    return decltype(std::declval<const View&>().even_chunks(0))::kInstructions;
  }
}();

/// Whether unpacking first is faster: with nibbles, pairs of bits and bytes it is not (AMD Zen 3: q4_0 193 GOP/s as packed, 179 from a
/// slab; q5_0 154 and 177, q6_K 88 and 141).
template <class View>
inline constexpr bool kUnpacksFirst = kInstructionsToUnpack<View> > 2;

}  // namespace quench::generic
