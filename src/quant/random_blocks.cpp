#include "quant/random_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "base/float16.h"
#include "quant/block_layout.h"
#include "quant/k_quants.h"
#include "quant/table_quants.h"

namespace quench {
namespace {

// Setters of the scales in a block whose bytes are already random. `d` is the scale that the block shall have. Offsets are chosen so
// that uniform quants have mean 0, and sub-block minima follow their scales.

template <class Block>
void set_scales(Block& block, float d, Xoshiro256&) noexcept {
  block.d = to_f16_saturate(d);
}

/// Ranges that reach one further down than up take either sign of the scale, as encoders do: the means cancel.
template <class Block>
void set_signed_scale(Block& block, float d, Xoshiro256& random) noexcept {
  block.d = to_f16_saturate(random.below(2) != 0 ? -d : d);
}
void set_scales(BlockQ4_0& block, float d, Xoshiro256& random) noexcept { set_signed_scale(block, d, random); }
void set_scales(BlockQ5_0& block, float d, Xoshiro256& random) noexcept { set_signed_scale(block, d, random); }
void set_scales(BlockIq4_NL& block, float d, Xoshiro256& random) noexcept { set_signed_scale(block, d, random); }

void set_scales(BlockQ4_1& block, float d, Xoshiro256&) noexcept {
  block.d = to_f16_saturate(d);
  block.m = to_f16_saturate(-7.5f * d);
}

void set_scales(BlockQ5_1& block, float d, Xoshiro256&) noexcept {
  block.d = to_f16_saturate(d);
  block.m = to_f16_saturate(-15.5f * d);
}

void set_scales(BlockQ2_K& block, float d, Xoshiro256& random) noexcept {
  block.d = to_f16_saturate(d);
  block.dmin = to_f16_saturate(1.5f * d);
  for (auto& scale : block.scales) scale = static_cast<std::uint8_t>((8 + random.below(8)) * 0x11);
}

template <class Block>
void set_six_bit_scales(Block& block, float d, float middle, Xoshiro256& random) noexcept {
  block.d = to_f16_saturate(d);
  block.dmin = to_f16_saturate(middle * d);
  std::array<int, 8> scales;
  for (int& scale : scales) scale = static_cast<int>(32 + random.below(32));
  block.scales = pack_scales_and_minima(scales, scales);
}
void set_scales(BlockQ4_K& block, float d, Xoshiro256& random) noexcept { set_six_bit_scales(block, d, 7.5f, random); }
void set_scales(BlockQ5_K& block, float d, Xoshiro256& random) noexcept { set_six_bit_scales(block, d, 15.5f, random); }

void set_scales(BlockIq1_M& block, float d, Xoshiro256&) noexcept {
  const unsigned bits = to_f16_saturate(d).bits;
  for (std::size_t i = 0; i < 4; ++i) {
    block.scales[i] = static_cast<std::uint16_t>((block.scales[i] & 0x0FFF) | (((bits >> (4 * i)) & 15) << 12));
  }
}

/// Two-bit quants 0..3 mean -1..2: 3 becomes 1, so that the values are ternary and their mean is 0.
void make_ternary(std::uint8_t* packed, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; ++i) {
    const unsigned threes = packed[i] & (packed[i] >> 1) & 0x55u;
    packed[i] = static_cast<std::uint8_t>(packed[i] & ~(threes << 1));
  }
}

void set_scales(BlockQ2_0& block, float d, Xoshiro256&) noexcept {
  block.d = to_f16_saturate(d);
  make_ternary(block.quants.data(), block.quants.size());
}
void set_scales(BlockTq2_0& block, float d, Xoshiro256&) noexcept {
  block.d = to_f16_saturate(d);
  make_ternary(block.quants.data(), block.quants.size());
}

/// `below` or the next code, by chance such that the expected square of the scale is d's.
std::uint8_t pick_code(std::uint8_t below, float d, float (*scale_of)(std::uint8_t), Xoshiro256& random) noexcept {
  const auto above = static_cast<std::uint8_t>(below + 1);
  const double low = scale_of(below);
  const double high = scale_of(above);
  const double share = (static_cast<double>(d) * d - low * low) / (high * high - low * low);
  return random.uniform() < share ? above : below;
}

void set_scales(BlockMxfp4& block, float d, Xoshiro256& random) noexcept {
  const int below = std::clamp(std::ilogb(d) + 128, 0, 250);
  block.exponent = pick_code(static_cast<std::uint8_t>(below), d, e8m0_half, random);
}

void set_scales(BlockNvfp4& block, float d, Xoshiro256& random) noexcept {
  for (auto& scale : block.scales) {
    scale = pick_code(std::min<std::uint8_t>(ue4m3_half_below(d), 0x7D), d, ue4m3_half, random);
  }
}

template <class Block>
void fill(Xoshiro256& random, std::size_t n_blocks, float d, std::byte* out) noexcept {
  constexpr std::size_t kWords = (sizeof(Block) + 7) / 8;
  for (std::size_t i = 0; i < n_blocks; ++i) {
    std::array<std::uint64_t, kWords> words;
    for (auto& word : words) word = random.next();
    auto block = load_block<Block>(reinterpret_cast<const std::byte*>(words.data()));
    // Blocks differ in scale, as they do in a real file.
    set_scales(block, d * (0.75f + 0.5f * static_cast<float>(random.uniform())), random);
    store_block(block, out + i * sizeof(Block));
  }
}

void fill_floats(const FormatInfo& info, Xoshiro256& random, std::size_t n_elements, float magnitude, std::byte* out) noexcept {
  const float half_width = std::numbers::sqrt3_v<float> * magnitude;
  for (std::size_t i = 0; i < n_elements; ++i) {
    const float value = half_width * (2.0f * static_cast<float>(random.uniform()) - 1.0f);
    info.encode(&value, 1, out + i * static_cast<std::size_t>(info.block_bytes));
  }
}

void fill_format(Format format, Xoshiro256& random, std::size_t n_blocks, float d, std::byte* out) noexcept {
  switch (format) {
    case Format::kF32:
    case Format::kF16:
    case Format::kBF16: return fill_floats(format_info(format), random, n_blocks, d, out);
    case Format::kQ4_0: return fill<BlockQ4_0>(random, n_blocks, d, out);
    case Format::kQ4_1: return fill<BlockQ4_1>(random, n_blocks, d, out);
    case Format::kQ5_0: return fill<BlockQ5_0>(random, n_blocks, d, out);
    case Format::kQ5_1: return fill<BlockQ5_1>(random, n_blocks, d, out);
    case Format::kQ8_0: return fill<BlockQ8_0>(random, n_blocks, d, out);
    case Format::kQ2_K: return fill<BlockQ2_K>(random, n_blocks, d, out);
    case Format::kQ3_K: return fill<BlockQ3_K>(random, n_blocks, d, out);
    case Format::kQ4_K: return fill<BlockQ4_K>(random, n_blocks, d, out);
    case Format::kQ5_K: return fill<BlockQ5_K>(random, n_blocks, d, out);
    case Format::kQ6_K: return fill<BlockQ6_K>(random, n_blocks, d, out);
    case Format::kIq2_XXS: return fill<BlockIq2_XXS>(random, n_blocks, d, out);
    case Format::kIq2_XS: return fill<BlockIq2_XS>(random, n_blocks, d, out);
    case Format::kIq3_XXS: return fill<BlockIq3_XXS>(random, n_blocks, d, out);
    case Format::kIq1_S: return fill<BlockIq1_S>(random, n_blocks, d, out);
    case Format::kIq4_NL: return fill<BlockIq4_NL>(random, n_blocks, d, out);
    case Format::kIq3_S: return fill<BlockIq3_S>(random, n_blocks, d, out);
    case Format::kIq2_S: return fill<BlockIq2_S>(random, n_blocks, d, out);
    case Format::kIq4_XS: return fill<BlockIq4_XS>(random, n_blocks, d, out);
    case Format::kIq1_M: return fill<BlockIq1_M>(random, n_blocks, d, out);
    case Format::kTq1_0: return fill<BlockTq1_0>(random, n_blocks, d, out);
    case Format::kTq2_0: return fill<BlockTq2_0>(random, n_blocks, d, out);
    case Format::kMxfp4: return fill<BlockMxfp4>(random, n_blocks, d, out);
    case Format::kNvfp4: return fill<BlockNvfp4>(random, n_blocks, d, out);
    case Format::kQ1_0: return fill<BlockQ1_0>(random, n_blocks, d, out);
    case Format::kQ2_0: return fill<BlockQ2_0>(random, n_blocks, d, out);
  }
}

/// Root mean square of the values that fill_format makes with a scale of 1, by type number; measured once.
using DeviationTable = std::array<float, 64>;

float measure_deviation(const FormatInfo& info) {
  constexpr std::size_t kBlocks = 64;
  Xoshiro256 random(1);
  std::vector<std::byte> blocks(kBlocks * static_cast<std::size_t>(info.block_bytes));
  std::vector<float> values(kBlocks * static_cast<std::size_t>(info.block_elements));
  fill_format(info.format, random, kBlocks, 1.0f, blocks.data());
  info.decode(blocks.data(), kBlocks, values.data());
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return static_cast<float>(std::sqrt(sum / static_cast<double>(values.size())));
}

float unit_deviation(Format format) {
  static const DeviationTable table = [] {
    DeviationTable deviations{};
    for (const FormatInfo& info : all_formats()) {
      deviations[static_cast<std::size_t>(info.format)] = info.arithmetic == Arithmetic::kFloat ? 1.0f : measure_deviation(info);
    }
    return deviations;
  }();
  return table[static_cast<std::size_t>(format)];
}

}  // namespace

void random_blocks(Format format, Xoshiro256& random, std::size_t n_blocks, float magnitude, std::byte* out) {
  fill_format(format, random, n_blocks, magnitude / unit_deviation(format), out);
}

}  // namespace quench
