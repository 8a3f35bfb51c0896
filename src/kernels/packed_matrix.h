#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned.h"
#include "quant/format.h"

namespace quench {

/// Output rows that one tile holds side by side: lanes of every kernel run across them.
inline constexpr std::size_t kTileRows = 16;

/// Weights [rows x columns] in the file's own format, repacked into tiles of 16 rows (docs/weights.md draws every layout): per tile
/// all scales first, then the quants, 64-byte aligned, so that one 64-byte load holds 4 consecutive k of 16 rows (8 when they are 4-bit).
/// One layout serves every instruction set, GEMV, GEMM and the embedding gather. Rows are padded to 16 with zero weights.
/// Formats without a layout of their own keep their file blocks, interleaved over the 16 rows: [block][16][block_bytes].
class PackedMatrix {
 public:
  PackedMatrix() = default;
  /// Zero-filled; pack_rows fills it. `rows` and `columns` are validated: columns a whole number of blocks. `what` names it in an
  /// out-of-memory error.
  PackedMatrix(Format format, std::size_t rows, std::size_t columns, const char* what);
  /// The same, validated, but without memory until bind() gives it some: many matrices side by side get huge pages, each alone may not.
  [[nodiscard]] static PackedMatrix unbound(Format format, std::size_t rows, std::size_t columns, const char* what);
  /// `memory`: size_bytes() zero bytes, 64-byte aligned, that outlive the matrix.
  void bind(std::byte* memory) noexcept { data_ = memory; }

  [[nodiscard]] Format format() const noexcept { return format_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] std::size_t tile_count() const noexcept { return (rows_ + kTileRows - 1) / kTileRows; }
  [[nodiscard]] std::size_t tile_bytes() const noexcept { return tile_bytes_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return tile_count() * tile_bytes_; }
  [[nodiscard]] const std::byte* tile(std::size_t index) const noexcept { return data_ + index * tile_bytes_; }

  /// Packs file rows [first_row, first_row + n) from their file bytes, n = file_rows.size() / row_bytes. first_row is a multiple of 16;
  /// n is one too unless the rows end there. Calls for different tiles may run on different threads.
  void pack_rows(std::size_t first_row, std::span<const std::byte> file_rows) noexcept;

  /// Row `row` decoded to f32 [columns], the same bits as decoding the file's blocks.
  void gather_row(std::size_t row, std::span<float> out) const noexcept;
  /// The file bytes of row `row`: packing loses nothing.
  void unpack_row(std::size_t row, std::span<std::byte> file_row) const noexcept;

 private:
  Format format_ = Format::kF32;
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::size_t tile_bytes_ = 0;
  std::byte* data_ = nullptr;
  AlignedBuffer own_;  ///< empty when bound
};

/// Bytes of one packed tile of `columns` columns.
[[nodiscard]] std::size_t packed_tile_bytes(Format format, std::size_t columns) noexcept;

}  // namespace quench
