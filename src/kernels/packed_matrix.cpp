#include "kernels/packed_matrix.h"

#include <array>
#include <string>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/packing/layout.h"

namespace quench {
namespace {

/// Throws where the request is no matrix of this format or its size cannot be expressed.
void check_shape(Format format, std::size_t rows, std::size_t columns, const char* what) {
  const FormatInfo& info = format_info(format);
  const auto shape = [&] { return std::to_string(rows) + " x " + std::to_string(columns); };
  if (rows == 0 || columns == 0 || columns % static_cast<std::size_t>(info.block_elements) != 0) {
    throw_bad_file(std::string(what) + ": " + std::string(info.name) + " cannot hold rows of " + shape() + ": whole blocks of " +
                   std::to_string(info.block_elements) + " are needed");
  }
  // A tile is at most 16 x 4 bytes a column: check once that nothing below can wrap.
  const auto bound = checked_mul(round_up(rows, kTileRows), columns);
  if (!bound || !checked_mul(*bound, 8)) throw_out_of_memory(std::string(what) + ": " + shape() + " elements do not fit in memory");
}

}  // namespace

std::size_t packed_tile_bytes(Format format, std::size_t columns) noexcept { return pack_layout(format).tile_bytes(columns); }

PackedMatrix PackedMatrix::unbound(Format format, std::size_t rows, std::size_t columns, const char* what) {
  check_shape(format, rows, columns, what);
  PackedMatrix matrix;
  matrix.format_ = format;
  matrix.rows_ = rows;
  matrix.columns_ = columns;
  matrix.tile_bytes_ = packed_tile_bytes(format, columns);
  return matrix;
}

PackedMatrix::PackedMatrix(Format format, std::size_t rows, std::size_t columns, const char* what)
    : PackedMatrix(unbound(format, rows, columns, what)) {
  own_ = AlignedBuffer(size_bytes(), what);
  data_ = own_.data();
}

void PackedMatrix::pack_rows(std::size_t first_row, std::span<const std::byte> file_rows) noexcept {
  const PackLayout& layout = pack_layout(format_);
  const FormatInfo& info = format_info(format_);
  const std::size_t row_size = columns_ / static_cast<std::size_t>(info.block_elements) * static_cast<std::size_t>(info.block_bytes);
  const std::size_t n_rows = file_rows.size() / row_size;
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::size_t row = first_row + i;
    std::byte* tile = data_ + row / kTileRows * tile_bytes_;
    layout.pack_row(tile, columns_, row % kTileRows, file_rows.data() + i * row_size);
  }
}

void PackedMatrix::unpack_row(std::size_t row, std::span<std::byte> file_row) const noexcept {
  pack_layout(format_).unpack_row(tile(row / kTileRows), columns_, row % kTileRows, file_row.data());
}

void PackedMatrix::gather_row(std::size_t row, std::span<float> out) const noexcept {
  const PackLayout& layout = pack_layout(format_);
  const FormatInfo& info = format_info(format_);
  const auto block_elements = static_cast<std::size_t>(info.block_elements);
  std::array<std::byte, kMaxBlockBytes> block;
  for (std::size_t b = 0; b * block_elements < columns_; ++b) {
    layout.unpack_block(tile(row / kTileRows), columns_, row % kTileRows, b, block.data());
    info.decode(block.data(), 1, out.data() + b * block_elements);
  }
}

}  // namespace quench
