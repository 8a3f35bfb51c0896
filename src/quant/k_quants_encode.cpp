#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/float16.h"
#include "quant/block_layout.h"
#include "quant/k_quants.h"
#include "quant/scale_search.h"

namespace quench {
namespace {

/// A super-block before packing. Codes are offset to start at 0.
template <std::size_t kSubBlocks>
struct Encoded {
  F16 d;
  F16 dmin;
  std::array<int, kSubBlocks> scales;
  std::array<int, kSubBlocks> minima;
  std::array<std::uint8_t, 256> codes;
};

/// Signed sub-scales in [lowest_scale, -lowest_scale - 1], quants in [lowest, -lowest - 1].
template <std::size_t kSubBlocks>
Encoded<kSubBlocks> encode_signed(const float* values, int lowest_scale, int lowest) noexcept {
  constexpr std::size_t kSub = 256 / kSubBlocks;
  std::array<float, kSubBlocks> scales;
  float extreme = 0.0f;
  for (std::size_t j = 0; j < kSubBlocks; ++j) {
    scales[j] = fit_scale(std::span(values + kSub * j, kSub), lowest, -lowest - 1);
    extreme = std::abs(scales[j]) > std::abs(extreme) ? scales[j] : extreme;
  }
  // The scale of largest magnitude takes the one code that has no opposite.
  Encoded<kSubBlocks> result{};
  result.d = to_f16_saturate(extreme / static_cast<float>(lowest_scale));
  const float d = to_f32(result.d);
  for (std::size_t j = 0; j < kSubBlocks; ++j) {
    result.scales[j] = quantize(scales[j] * inverse(d), lowest_scale, -lowest_scale - 1);
    const float id = inverse(d * static_cast<float>(result.scales[j]));
    for (std::size_t i = kSub * j; i < kSub * (j + 1); ++i) {
      result.codes[i] = static_cast<std::uint8_t>(quantize(values[i] * id, lowest, -lowest - 1) - lowest);
    }
  }
  return result;
}

/// Unsigned sub-scales and minima in 0..highest_scale, quants in 0..highest.
template <std::size_t kSubBlocks>
Encoded<kSubBlocks> encode_affine(const float* values, int highest_scale, int highest) noexcept {
  constexpr std::size_t kSub = 256 / kSubBlocks;
  std::array<AffineFit, kSubBlocks> fits;
  float largest_scale = 0.0f;
  float largest_min = 0.0f;
  for (std::size_t j = 0; j < kSubBlocks; ++j) {
    fits[j] = fit_affine(std::span(values + kSub * j, kSub), highest, false);
    largest_scale = std::max(largest_scale, fits[j].scale);
    largest_min = std::max(largest_min, -fits[j].offset);
  }
  Encoded<kSubBlocks> result{};
  result.d = to_f16_saturate(largest_scale / static_cast<float>(highest_scale));
  result.dmin = to_f16_saturate(largest_min / static_cast<float>(highest_scale));
  const float d = to_f32(result.d);
  const float dmin = to_f32(result.dmin);
  for (std::size_t j = 0; j < kSubBlocks; ++j) {
    result.scales[j] = quantize(fits[j].scale * inverse(d), 0, highest_scale);
    result.minima[j] = quantize(-fits[j].offset * inverse(dmin), 0, highest_scale);
    const float id = inverse(d * static_cast<float>(result.scales[j]));
    const float min = dmin * static_cast<float>(result.minima[j]);
    for (std::size_t i = kSub * j; i < kSub * (j + 1); ++i) {
      result.codes[i] = static_cast<std::uint8_t>(quantize((values[i] + min) * id, 0, highest));
    }
  }
  return result;
}

/// Two low bits of each code: byte l of each half holds elements l, l + 32, l + 64, l + 96 of its 128.
Bytes<64> pack_two_bits(const std::array<std::uint8_t, 256>& codes) noexcept {
  Bytes<64> packed{};
  for (std::size_t i = 0; i < 256; ++i) {
    auto& byte = packed[32 * (i / 128) + i % 32];
    byte = static_cast<std::uint8_t>(byte | ((codes[i] & 3) << (2 * ((i / 32) % 4))));
  }
  return packed;
}

/// Bit `from` of each code: bit i / 32 of byte i % 32.
Bytes<32> pack_one_bit(const std::array<std::uint8_t, 256>& codes, unsigned from) noexcept {
  Bytes<32> packed{};
  for (std::size_t i = 0; i < 256; ++i) packed[i % 32] = static_cast<std::uint8_t>(packed[i % 32] | (((codes[i] >> from) & 1) << (i / 32)));
  return packed;
}

/// Four low bits of each code: `run` elements in the low nibbles, the next `run` in the high nibbles of the same bytes.
Bytes<128> pack_four_bits(const std::array<std::uint8_t, 256>& codes, std::size_t run) noexcept {
  Bytes<128> packed{};
  for (std::size_t i = 0; i < 256; ++i) {
    auto& byte = packed[i / (2 * run) * run + i % run];
    byte = static_cast<std::uint8_t>(byte | ((codes[i] & 15) << (4 * ((i / run) % 2))));
  }
  return packed;
}

}  // namespace

void encode_q2_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const auto e = encode_affine<16>(values + 256 * i, 15, 3);
    BlockQ2_K block{.scales = {}, .quants = pack_two_bits(e.codes), .d = e.d, .dmin = e.dmin};
    for (std::size_t j = 0; j < 16; ++j) block.scales[j] = static_cast<std::uint8_t>(e.scales[j] | (e.minima[j] << 4));
    store_block(block, blocks + i * sizeof(block));
  }
}

void encode_q3_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) {
    auto e = encode_signed<16>(values + 256 * i, -32, -4);
    for (int& scale : e.scales) scale += 32;
    const BlockQ3_K block{
        .high = pack_one_bit(e.codes, 2), .quants = pack_two_bits(e.codes), .scales = pack_q3_K_scales(e.scales), .d = e.d};
    store_block(block, blocks + i * sizeof(block));
  }
}

void encode_q4_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const auto e = encode_affine<8>(values + 256 * i, 63, 15);
    const BlockQ4_K block{
        .d = e.d, .dmin = e.dmin, .scales = pack_scales_and_minima(e.scales, e.minima), .quants = pack_four_bits(e.codes, 32)};
    store_block(block, blocks + i * sizeof(block));
  }
}

void encode_q5_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const auto e = encode_affine<8>(values + 256 * i, 63, 31);
    const BlockQ5_K block{.d = e.d,
                          .dmin = e.dmin,
                          .scales = pack_scales_and_minima(e.scales, e.minima),
                          .high = pack_one_bit(e.codes, 4),
                          .quants = pack_four_bits(e.codes, 32)};
    store_block(block, blocks + i * sizeof(block));
  }
}

void encode_q6_K(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const auto e = encode_signed<16>(values + 256 * i, -128, -32);
    std::array<std::uint8_t, 256> high;
    for (std::size_t k = 0; k < 256; ++k) high[k] = static_cast<std::uint8_t>(e.codes[k] >> 4);
    BlockQ6_K block{.low = pack_four_bits(e.codes, 64), .high = pack_two_bits(high), .scales = {}, .d = e.d};
    std::copy(e.scales.begin(), e.scales.end(), block.scales.begin());
    store_block(block, blocks + i * sizeof(block));
  }
}

}  // namespace quench
