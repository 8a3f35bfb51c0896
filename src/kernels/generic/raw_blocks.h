#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/generic/blocks.h"
#include "quant/integer_form.h"

namespace quench::generic {

/// One file block of 16 rows, decoded to the layout of q8_0 with its scales spread out: about 10 KiB, which stays in L1 while all tokens
/// pass over it.
template <class V>
struct RawTile {
  alignas(64) std::byte quants[256 / 4 * tiles::kChunkBytes];
  alignas(64) float scale[8][tiles::kRows];
  alignas(64) float min[8][tiles::kRows];
  alignas(64) std::int16_t sub_scale[8][tiles::kRows][2];
  alignas(64) std::int16_t sub_min[8][tiles::kRows][2];

  /// Tile of file blocks [block][16][block_bytes].
  void decode(const std::byte* tile, const FormatInfo& info, std::size_t block) noexcept {
    const auto bytes = static_cast<std::size_t>(info.block_bytes);
    IntegerBlock form;
    for (std::size_t row = 0; row < tiles::kRows; ++row) {
      info.unpack(tile + (block * tiles::kRows + row) * bytes, form);
      spread(form, info.shape, info.arithmetic, row);
    }
  }

 private:
  void spread(const IntegerBlock& form, const IntegerShape& shape, Arithmetic arithmetic, std::size_t row) noexcept {
    const std::int8_t* from = form.quants.data();
    for (std::size_t c = 0; c < static_cast<std::size_t>(shape.block_elements) / 4; ++c) {
      std::uint32_t word;
      std::memcpy(&word, from + 4 * c, sizeof(word));
      word ^= 0x80808080u;
      std::memcpy(quants + c * tiles::kChunkBytes + row * 4, &word, sizeof(word));
    }
    const auto groups = static_cast<std::size_t>(shape.block_elements / shape.group_elements);
    const float* scales = form.scale.data();
    const float* mins = form.min.data();
    for (std::size_t g = 0; g < groups; ++g) {
      scale[g][row] = scales[g];
      if (shape.has_min) min[g][row] = mins[g];
    }
    if (arithmetic != Arithmetic::kSuperBlock) return;
    const std::int16_t* sub_scales = form.sub_scale.data();
    const std::int16_t* sub_mins = form.sub_min.data();
    for (std::size_t j = 0; j < static_cast<std::size_t>(256 / shape.sub_elements); ++j) {
      sub_scale[j / 2][row][j % 2] = sub_scales[j];
      if (shape.has_min) sub_min[j / 2][row][j % 2] = sub_mins[j];
    }
  }
};

/// Group g of a decoded block, for add_group.
template <class V, int kGroupElements, bool kMin>
struct RawGroup {
  static constexpr int kBits = 8;
  static constexpr int kBias = V::kByteBias;
  static constexpr bool kHasMin = kMin;
  static constexpr int kChunks = kGroupElements / 4;
  static constexpr std::size_t kElements = kGroupElements;

  const float* scales;
  const float* mins;
  const std::byte* quants;

  RawGroup(const RawTile<V>& raw, std::size_t g, std::size_t sub) noexcept
      : scales(raw.scale[g] + sub * V::kN),
        mins(raw.min[g] + sub * V::kN),
        quants(raw.quants + g * kChunks * tiles::kChunkBytes + sub * V::kBytes) {}

  typename V::F scale(int s) const noexcept { return V::loadu(scales + static_cast<std::size_t>(s) * V::kN); }
  typename V::F min(int s) const noexcept { return V::loadu(mins + static_cast<std::size_t>(s) * V::kN); }
  ByteChunks<V> chunks() const noexcept { return {quants}; }
};

/// A decoded super-block, for add_super_block.
template <class V, int kSub, bool kMin>
struct RawSuper {
  static constexpr int kBits = 8;
  static constexpr int kBias = V::kByteBias;
  static constexpr bool kHasMin = kMin;
  static constexpr int kSubElements = kSub;
  static constexpr std::size_t kElements = 256;

  const RawTile<V>& raw;
  std::size_t sub;

  RawSuper(const RawTile<V>& tile, std::size_t, std::size_t first_sub) noexcept : raw(tile), sub(first_sub) {}

  std::size_t row(int s) const noexcept { return (sub + static_cast<std::size_t>(s)) * V::kN; }
  typename V::F scale(int s) const noexcept { return V::loadu(raw.scale[0] + row(s)); }
  typename V::F min(int s) const noexcept { return V::loadu(raw.min[0] + row(s)); }
  typename V::I scale_pair(std::size_t p, int s) const noexcept {
    return V::pairs_from_i16(reinterpret_cast<const std::byte*>(raw.sub_scale[p][row(s)]));
  }
  typename V::I min_pair(std::size_t p, int s) const noexcept {
    return V::pairs_from_i16(reinterpret_cast<const std::byte*>(raw.sub_min[p][row(s)]));
  }
  ByteChunks<V> chunks(std::size_t j) const noexcept { return {raw.quants + j * (kSub / 4) * tiles::kChunkBytes + sub * V::kBytes}; }
};

}  // namespace quench::generic
