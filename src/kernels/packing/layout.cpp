#include "kernels/packing/layout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/packing/block_packers.h"
#include "kernels/packing/float_packers.h"
#include "kernels/packing/low_bit_packers.h"
#include "kernels/packing/super_packers.h"
#include "kernels/packing/table_packers.h"

namespace quench {
namespace {

/// A packer has kBlockBytes, kBlockElements, tile_bytes(columns), and pack and unpack for one block.
template <class Packer>
constexpr PackLayout layout_of() noexcept {
  return {
      .tile_bytes = [](std::size_t columns) noexcept { return Packer::tile_bytes(columns); },
      .pack_row =
          [](std::byte* tile, std::size_t columns, std::size_t row, const std::byte* file_row) noexcept {
            for (std::size_t b = 0; b < columns / Packer::kBlockElements; ++b) {
              Packer::pack(tile, columns, row, b, file_row + b * Packer::kBlockBytes);
            }
          },
      .unpack_row =
          [](const std::byte* tile, std::size_t columns, std::size_t row, std::byte* file_row) noexcept {
            for (std::size_t b = 0; b < columns / Packer::kBlockElements; ++b) {
              Packer::unpack(tile, columns, row, b, file_row + b * Packer::kBlockBytes);
            }
          },
      .unpack_block = [](const std::byte* tile, std::size_t columns, std::size_t row, std::size_t block,
                         std::byte* file_block) noexcept { Packer::unpack(tile, columns, row, block, file_block); },
  };
}

/// Formats without a layout of their own keep their file blocks, interleaved over the rows: [block][16][block_bytes].
template <std::size_t kBytes, std::size_t kElements>
struct RawPacker {
  static constexpr std::size_t kBlockBytes = kBytes;
  static constexpr std::size_t kBlockElements = kElements;
  static_assert(kBytes <= kMaxBlockBytes && kElements <= kMaxBlockElements);

  static std::size_t tile_bytes(std::size_t columns) noexcept { return (columns / kElements * tiles::kRows * kBytes + 63) / 64 * 64; }
  static void pack(std::byte* tile, std::size_t, std::size_t row, std::size_t block, const std::byte* file_block) noexcept {
    std::memcpy(tile + (block * tiles::kRows + row) * kBytes, file_block, kBytes);
  }
  static void unpack(const std::byte* tile, std::size_t, std::size_t row, std::size_t block, std::byte* file_block) noexcept {
    std::memcpy(file_block, tile + (block * tiles::kRows + row) * kBytes, kBytes);
  }
};

template <class Packer>
constexpr PackLayout kOwn = layout_of<Packer>();
template <std::size_t kBytes, std::size_t kElements>
constexpr PackLayout kRaw = layout_of<RawPacker<kBytes, kElements>>();

}  // namespace

const PackLayout& pack_layout(Format format) noexcept {
  switch (format) {
    case Format::kF32: return kOwn<F32Packer>;
    case Format::kF16: return kOwn<F16Packer>;
    case Format::kBF16: return kOwn<BF16Packer>;
    case Format::kQ8_0: return kOwn<Q8_0Packer>;
    case Format::kQ4_0: return kOwn<Q4_0Packer>;
    case Format::kQ4_1: return kOwn<Q4_1Packer>;
    case Format::kQ5_0: return kOwn<Q5_0Packer>;
    case Format::kQ4_K: return kOwn<Q4_KPacker>;
    case Format::kQ6_K: return kOwn<Q6_KPacker>;
    case Format::kQ5_1: return kOwn<Q5_1Packer>;
    case Format::kIq4_NL: return kOwn<Iq4_NLPacker>;
    case Format::kMxfp4: return kOwn<Mxfp4Packer>;
    case Format::kNvfp4: return kOwn<Nvfp4Packer>;
    case Format::kQ1_0: return kOwn<Q1_0Packer>;
    case Format::kQ2_0: return kOwn<Q2_0Packer>;
    case Format::kQ2_K: return kOwn<Q2_KPacker>;
    case Format::kQ3_K: return kOwn<Q3_KPacker>;
    case Format::kQ5_K: return kOwn<Q5_KPacker>;
    case Format::kIq2_XXS: return kRaw<66, 256>;
    case Format::kIq2_XS: return kRaw<74, 256>;
    case Format::kIq2_S: return kRaw<82, 256>;
    case Format::kIq3_XXS: return kRaw<98, 256>;
    case Format::kIq3_S: return kRaw<110, 256>;
    case Format::kIq1_S: return kRaw<50, 256>;
    case Format::kIq1_M: return kRaw<56, 256>;
    case Format::kIq4_XS: return kOwn<Iq4_XSPacker>;
    case Format::kTq1_0: return kRaw<54, 256>;
    case Format::kTq2_0: return kOwn<Tq2_0Packer>;
  }
  __builtin_unreachable();
}

}  // namespace quench
