#pragma once

#include <cstddef>

#include "quant/format.h"

namespace quench {

/// How one format is laid out in a tile of 16 rows. All functions are lossless inverses of each other and touch only the bytes of
/// their row.
struct PackLayout {
  std::size_t (*tile_bytes)(std::size_t columns) noexcept;
  /// Writes the file bytes of one row into row `row` (0..15) of a zero-filled tile.
  void (*pack_row)(std::byte* tile, std::size_t columns, std::size_t row, const std::byte* file_row) noexcept;
  void (*unpack_row)(const std::byte* tile, std::size_t columns, std::size_t row, std::byte* file_row) noexcept;
  /// File block number `block` of row `row`.
  void (*unpack_block)(const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block, std::byte* file_block) noexcept;
};

[[nodiscard]] const PackLayout& pack_layout(Format format) noexcept;

/// The largest file block of any format, in bytes and in elements.
inline constexpr std::size_t kMaxBlockBytes = 256;
inline constexpr std::size_t kMaxBlockElements = 256;

}  // namespace quench
