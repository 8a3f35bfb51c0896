#include "quant/table_quants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "base/float16.h"
#include "quant/block_layout.h"
#include "quant/scale_search.h"
#include "quant/spread.h"

namespace quench {
namespace {

constexpr NibblePairs kIq4Pairs = nibble_pairs(kIq4Values);
constexpr NibblePairs kFp4Pairs = nibble_pairs(kFp4Values);

/// The code whose value is nearest to `x` in the ascending table of iq4: the number of midpoints below it.
std::uint8_t nearest_iq4(float x) noexcept {
  unsigned code = 0;
  for (std::size_t i = 0; i < 15; ++i) code += static_cast<unsigned>(x > 0.5f * static_cast<float>(kIq4Values[i] + kIq4Values[i + 1]));
  return static_cast<std::uint8_t>(code);
}

/// The code whose value is nearest to `x` in the doubled E2M1 table: sign bit and the number of midpoints below |x|.
std::uint8_t nearest_fp4(float x) noexcept {
  const float magnitude = std::abs(x);
  unsigned code = 0;
  for (std::size_t i = 0; i < 7; ++i)
    code += static_cast<unsigned>(magnitude > 0.5f * static_cast<float>(kFp4Values[i] + kFp4Values[i + 1]));
  return static_cast<std::uint8_t>(code | (x < 0.0f && code != 0 ? 8u : 0u));
}

/// Least-squares scale for 32 values under iq4's table, either sign. The candidates put the value of largest magnitude on and around
/// the ends of the table (-127 and 113).
float fit_iq4_scale(std::span<const float> values) noexcept {
  float extreme = 0.0f;
  for (const float x : values) extreme = std::abs(x) > std::abs(extreme) ? x : extreme;
  float best_scale = 0.0f;
  float best_gain = 0.0f;
  for (int step = -8; step <= 8; ++step) {
    const float end = static_cast<float>(step <= 0 ? -127 - 5 * (step + 4) : 113 + 5 * (step - 4));
    const float id = inverse(extreme / end);
    float sum_xq = 0.0f;
    float sum_qq = 0.0f;
    for (const float x : values) {
      const auto q = static_cast<float>(kIq4Values[nearest_iq4(x * id)]);
      sum_xq += x * q;
      sum_qq += q * q;
    }
    const float gain = sum_xq * (sum_xq / sum_qq);
    if (gain > best_gain) {
      best_gain = gain;
      best_scale = sum_xq / sum_qq;
    }
  }
  return best_scale;
}

template <std::size_t kElements>
float fp4_error(const float* values, float scale) noexcept {
  const float id = inverse(scale);
  float error = 0.0f;
  for (std::size_t i = 0; i < kElements; ++i) {
    const float difference = values[i] - scale * static_cast<float>(kFp4Values[nearest_fp4(values[i] * id)]);
    error += difference * difference;
  }
  return error;
}

float largest_magnitude(std::span<const float> values) noexcept {
  float largest = 0.0f;
  for (const float x : values) largest = std::max(largest, std::abs(x));
  return largest;
}

/// Among the code below, at and above `guess`, the scale code with the least squared error.
template <std::size_t kElements>
std::uint8_t best_scale_code(const float* values, int guess, int lowest, int highest, float (*scale_of)(std::uint8_t)) noexcept {
  int best = std::clamp(guess, lowest, highest);
  float best_error = fp4_error<kElements>(values, scale_of(static_cast<std::uint8_t>(best)));
  for (const int code : {guess - 1, guess + 1}) {
    if (code < lowest || code > highest) continue;
    const float error = fp4_error<kElements>(values, scale_of(static_cast<std::uint8_t>(code)));
    if (error < best_error) {
      best_error = error;
      best = code;
    }
  }
  return static_cast<std::uint8_t>(best);
}

}  // namespace

float e8m0_half(std::uint8_t exponent) noexcept {
  const std::uint32_t bits = exponent < 2 ? std::uint32_t{0x00200000} << exponent : (exponent - std::uint32_t{1}) << 23;
  return std::bit_cast<float>(bits);
}

float ue4m3_half(std::uint8_t code) noexcept {
  if (code == 0 || code == 0x7F) return 0.0f;
  const std::uint32_t exponent = (code >> 3) & 15u;
  const std::uint32_t mantissa = code & 7u;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  // Bias 7, and one less for the half: f32 exponent = exponent - 7 - 1 + 127.
  return std::bit_cast<float>(((exponent + 119u) << 23) | (mantissa << 20));
}

// Codes 0..0x7E ascend in value.
std::uint8_t ue4m3_half_below(float target) noexcept {
  int low = 0;
  int high = 0x7E;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (ue4m3_half(static_cast<std::uint8_t>(middle)) <= target) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return static_cast<std::uint8_t>(low);
}

void unpack_iq4_nl(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockIq4_NL>(block);
  out.scale[0] = to_f32(b.d);
  look_up_nibbles<16>(b.quants.data(), kIq4Pairs, out.quants.data());
}

void unpack_iq4_xs(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockIq4_XS>(block);
  out.scale[0] = to_f32(b.d);
  for (std::size_t j = 0; j < 8; ++j) {
    const int low = (b.scales_low[j / 2] >> (4 * (j % 2))) & 15;
    const int high = (b.scales_high >> (2 * j)) & 3;
    out.sub_scale[j] = static_cast<std::int16_t>((low | (high << 4)) - 32);
    look_up_nibbles<16>(b.quants.data() + 16 * j, kIq4Pairs, out.quants.data() + 32 * j);
  }
}

void unpack_mxfp4(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockMxfp4>(block);
  out.scale[0] = e8m0_half(b.exponent);
  look_up_nibbles<16>(b.quants.data(), kFp4Pairs, out.quants.data());
}

void unpack_nvfp4(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockNvfp4>(block);
  for (std::size_t group = 0; group < 4; ++group) {
    out.scale[group] = ue4m3_half(b.scales[group]);
    look_up_nibbles<8>(b.quants.data() + 8 * group, kFp4Pairs, out.quants.data() + 16 * group);
  }
}

void encode_iq4_nl(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i, values += 32) {
    BlockIq4_NL block{.d = to_f16_saturate(fit_iq4_scale(std::span(values, 32))), .quants = {}};
    const float id = inverse(to_f32(block.d));
    Bytes<32> codes;
    for (std::size_t k = 0; k < 32; ++k) codes[k] = nearest_iq4(values[k] * id);
    pack_nibbles<16>(codes.data(), block.quants.data());
    store_block(block, blocks + i * sizeof(block));
  }
}

void encode_iq4_xs(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i, values += 256) {
    std::array<float, 8> scales;
    float extreme = 0.0f;
    for (std::size_t j = 0; j < 8; ++j) {
      scales[j] = fit_iq4_scale(std::span(values + 32 * j, 32));
      extreme = std::abs(scales[j]) > std::abs(extreme) ? scales[j] : extreme;
    }
    // The scale of largest magnitude takes the one code that has no opposite, -32.
    BlockIq4_XS block{.d = to_f16_saturate(extreme / -32.0f), .scales_high = 0, .scales_low = {}, .quants = {}};
    const float d = to_f32(block.d);
    for (std::size_t j = 0; j < 8; ++j) {
      const int sub_scale = quantize(scales[j] * inverse(d), -32, 31);
      const auto stored = static_cast<unsigned>(sub_scale + 32);
      block.scales_low[j / 2] = static_cast<std::uint8_t>(block.scales_low[j / 2] | ((stored & 15) << (4 * (j % 2))));
      block.scales_high = static_cast<std::uint16_t>(block.scales_high | ((stored >> 4) << (2 * j)));
      const float id = inverse(d * static_cast<float>(sub_scale));
      Bytes<32> codes;
      for (std::size_t k = 0; k < 32; ++k) codes[k] = nearest_iq4(values[32 * j + k] * id);
      pack_nibbles<16>(codes.data(), block.quants.data() + 16 * j);
    }
    store_block(block, blocks + i * sizeof(block));
  }
}

void encode_mxfp4(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i, values += 32) {
    // The largest value has E2M1's largest exponent, 2: floor(log2(largest)) - 2, biased by 127.
    const float largest = largest_magnitude(std::span(values, 32));
    const int guess = largest > 0.0f ? std::clamp(std::ilogb(largest) - 2 + 127, 0, 254) : 0;
    BlockMxfp4 block{.exponent = best_scale_code<32>(values, guess, 0, 254, e8m0_half), .quants = {}};
    const float id = inverse(e8m0_half(block.exponent));
    Bytes<32> codes;
    for (std::size_t k = 0; k < 32; ++k) codes[k] = nearest_fp4(values[k] * id);
    pack_nibbles<16>(codes.data(), block.quants.data());
    store_block(block, blocks + i * sizeof(block));
  }
}

void encode_nvfp4(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i, values += 64) {
    BlockNvfp4 block{};
    for (std::size_t group = 0; group < 4; ++group) {
      const float* x = values + 16 * group;
      const int guess = ue4m3_half_below(largest_magnitude(std::span(x, 16)) / 12.0f);
      block.scales[group] = best_scale_code<16>(x, guess, 0, 0x7E, ue4m3_half);
      const float id = inverse(ue4m3_half(block.scales[group]));
      Bytes<16> codes;
      for (std::size_t k = 0; k < 16; ++k) codes[k] = nearest_fp4(x[k] * id);
      pack_nibbles<8>(codes.data(), block.quants.data() + 8 * group);
    }
    store_block(block, blocks + i * sizeof(block));
  }
}

}  // namespace quench
