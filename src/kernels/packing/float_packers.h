#pragma once

#include <cstring>

#include "kernels/packing/tiles.h"

/// Packers of the float formats: a block is one element.
namespace quench {

/// f32 and f16: [k][16].
template <std::size_t kBytes>
struct FloatPacker {
  static constexpr std::size_t kBlockBytes = kBytes;
  static constexpr std::size_t kBlockElements = 1;
  static std::size_t tile_bytes(std::size_t columns) noexcept { return (columns * tiles::kRows * kBytes + 63) / 64 * 64; }

  static void pack(std::byte* tile, std::size_t, std::size_t row, std::size_t k, const std::byte* file) noexcept {
    std::memcpy(tile + (k * tiles::kRows + row) * kBytes, file, kBytes);
  }
  static void unpack(const std::byte* tile, std::size_t, std::size_t row, std::size_t k, std::byte* file) noexcept {
    std::memcpy(file, tile + (k * tiles::kRows + row) * kBytes, kBytes);
  }
};
using F32Packer = FloatPacker<4>;
using F16Packer = FloatPacker<2>;

/// bf16: [k / 2][16][2], an odd last column padded with zeros.
struct BF16Packer {
  static constexpr std::size_t kBlockBytes = 2;
  static constexpr std::size_t kBlockElements = 1;
  static std::size_t tile_bytes(std::size_t columns) noexcept { return (columns + 1) / 2 * 64; }
  static std::size_t offset(std::size_t row, std::size_t k) noexcept { return ((k / 2 * tiles::kRows + row) * 2 + k % 2) * 2; }

  static void pack(std::byte* tile, std::size_t, std::size_t row, std::size_t k, const std::byte* file) noexcept {
    std::memcpy(tile + offset(row, k), file, 2);
  }
  static void unpack(const std::byte* tile, std::size_t, std::size_t row, std::size_t k, std::byte* file) noexcept {
    std::memcpy(file, tile + offset(row, k), 2);
  }
};

}  // namespace quench
