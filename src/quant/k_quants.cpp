#include "quant/k_quants.h"

#include <algorithm>

#include "base/float16.h"

namespace quench {
namespace {

/// Six-bit scales and minima of q4_K and q5_K: the first four of each in the low 6 bits of bytes 0-3 and 4-7; of the last four,
/// the low nibbles in bytes 8-11 and the top two bits in the spare bits of bytes 0-7.
void unpack_scales_and_minima(const Bytes<12>& packed, IntegerBlock& out) noexcept {
  for (std::size_t j = 0; j < 4; ++j) {
    out.sub_scale[j] = static_cast<std::int16_t>(packed[j] & 63);
    out.sub_min[j] = static_cast<std::int16_t>(packed[j + 4] & 63);
    out.sub_scale[j + 4] = static_cast<std::int16_t>((packed[j + 8] & 15) | ((packed[j] >> 6) << 4));
    out.sub_min[j + 4] = static_cast<std::int16_t>((packed[j + 8] >> 4) | ((packed[j + 4] >> 6) << 4));
  }
}

}  // namespace

Bytes<12> pack_scales_and_minima(const std::array<int, 8>& scales, const std::array<int, 8>& minima) noexcept {
  Bytes<12> packed;
  for (std::size_t j = 0; j < 4; ++j) {
    packed[j] = static_cast<std::uint8_t>(scales[j] | ((scales[j + 4] >> 4) << 6));
    packed[j + 4] = static_cast<std::uint8_t>(minima[j] | ((minima[j + 4] >> 4) << 6));
    packed[j + 8] = static_cast<std::uint8_t>((scales[j + 4] & 15) | ((minima[j + 4] & 15) << 4));
  }
  return packed;
}

Bytes<12> pack_q3_K_scales(const std::array<int, 16>& scales) noexcept {
  Bytes<12> packed{};
  for (std::size_t j = 0; j < 16; ++j) {
    auto& low = packed[j % 8];
    auto& high = packed[8 + j % 4];
    low = static_cast<std::uint8_t>(low | ((scales[j] & 15) << (4 * (j / 8))));
    high = static_cast<std::uint8_t>(high | ((scales[j] >> 4) << (2 * (j / 4))));
  }
  return packed;
}

void unpack_q2_K(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ2_K>(block);
  out.scale[0] = to_f32(b.d);
  out.min[0] = to_f32(b.dmin);
  for (std::size_t j = 0; j < 16; ++j) {
    out.sub_scale[j] = static_cast<std::int16_t>(b.scales[j] & 15);
    out.sub_min[j] = static_cast<std::int16_t>(b.scales[j] >> 4);
  }
  for (std::size_t row = 0; row < 8; ++row) {
    const std::uint8_t* quants = b.quants.data() + 32 * (row / 4);
    const unsigned shift = 2 * (row % 4);
    for (std::size_t l = 0; l < 32; ++l) out.quants[32 * row + l] = static_cast<std::int8_t>((quants[l] >> shift) & 3);
  }
}

void unpack_q3_K(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ3_K>(block);
  out.scale[0] = to_f32(b.d);
  for (std::size_t j = 0; j < 16; ++j) {
    const int low = (b.scales[j % 8] >> (4 * (j / 8))) & 15;
    const int high = (b.scales[8 + j % 4] >> (2 * (j / 4))) & 3;
    out.sub_scale[j] = static_cast<std::int16_t>((low | (high << 4)) - 32);
  }
  for (std::size_t row = 0; row < 8; ++row) {
    const std::uint8_t* quants = b.quants.data() + 32 * (row / 4);
    const unsigned shift = 2 * (row % 4);
    for (std::size_t l = 0; l < 32; ++l) {
      const int high = (b.high[l] >> row) & 1;
      out.quants[32 * row + l] = static_cast<std::int8_t>(((quants[l] >> shift) & 3) + 4 * high - 4);
    }
  }
}

void unpack_q4_K(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ4_K>(block);
  out.scale[0] = to_f32(b.d);
  out.min[0] = to_f32(b.dmin);
  unpack_scales_and_minima(b.scales, out);
  for (std::size_t pair = 0; pair < 4; ++pair) {
    const std::uint8_t* quants = b.quants.data() + 32 * pair;
    std::int8_t* to = out.quants.data() + 64 * pair;
    for (std::size_t l = 0; l < 32; ++l) {
      to[l] = static_cast<std::int8_t>(quants[l] & 15);
      to[l + 32] = static_cast<std::int8_t>(quants[l] >> 4);
    }
  }
}

void unpack_q5_K(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ5_K>(block);
  out.scale[0] = to_f32(b.d);
  out.min[0] = to_f32(b.dmin);
  unpack_scales_and_minima(b.scales, out);
  for (std::size_t pair = 0; pair < 4; ++pair) {
    const std::uint8_t* quants = b.quants.data() + 32 * pair;
    std::int8_t* to = out.quants.data() + 64 * pair;
    for (std::size_t l = 0; l < 32; ++l) {
      const int high = b.high[l] >> (2 * pair);
      to[l] = static_cast<std::int8_t>((quants[l] & 15) | ((high & 1) << 4));
      to[l + 32] = static_cast<std::int8_t>((quants[l] >> 4) | ((high & 2) << 3));
    }
  }
}

void unpack_q6_K(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ6_K>(block);
  out.scale[0] = to_f32(b.d);
  std::copy(b.scales.begin(), b.scales.end(), out.sub_scale.begin());
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint8_t* low = b.low.data() + 64 * half;
    const std::uint8_t* high = b.high.data() + 32 * half;
    std::int8_t* to = out.quants.data() + 128 * half;
    for (std::size_t l = 0; l < 32; ++l) {
      to[l] = static_cast<std::int8_t>(((low[l] & 15) | ((high[l] & 3) << 4)) - 32);
      to[l + 32] = static_cast<std::int8_t>(((low[l + 32] & 15) | (((high[l] >> 2) & 3) << 4)) - 32);
      to[l + 64] = static_cast<std::int8_t>(((low[l] >> 4) | (((high[l] >> 4) & 3) << 4)) - 32);
      to[l + 96] = static_cast<std::int8_t>(((low[l + 32] >> 4) | ((high[l] >> 6) << 4)) - 32);
    }
  }
}

}  // namespace quench
