#include "quant/block_formats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/float16.h"
#include "quant/block_layout.h"
#include "quant/scale_search.h"
#include "quant/spread.h"

namespace quench {
namespace {

template <int kBias>
void spread_five_bits(const Bytes<16>& quants, const Bytes<4>& high, IntegerBlock& out) noexcept {
  std::array<std::int8_t, 32> fifth;
  for (std::size_t i = 0; i < 4; ++i) store_eight(spread_bits(high[i]) >> 3, fifth.data() + 8 * i);
  spread_nibbles<16, kBias>(quants.data(), out.quants.data());
  for (std::size_t i = 0; i < 32; ++i) out.quants[i] = static_cast<std::int8_t>(out.quants[i] + fifth[i]);
}

/// The four quants q - 1 of each byte of q2_0.
constexpr auto kQ2Quads = [] {
  std::array<std::uint32_t, 256> quads{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned j = 0; j < 4; ++j) quads[byte] |= std::uint32_t{static_cast<std::uint8_t>(((byte >> (2 * j)) & 3) - 1)} << (8 * j);
  }
  return quads;
}();

/// The codes of 32 values: quantize((value - offset) / scale) - lowest.
std::array<std::uint8_t, 32> codes_of(const float* values, F16 scale, F16 offset, int lowest, int highest) noexcept {
  const float id = inverse(to_f32(scale));
  const float m = to_f32(offset);
  std::array<std::uint8_t, 32> codes;
  for (std::size_t i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(quantize((values[i] - m) * id, lowest, highest) - lowest);
  return codes;
}

Bytes<4> pack_fifth_bits(const std::array<std::uint8_t, 32>& codes) noexcept {
  Bytes<4> high{};
  for (unsigned i = 0; i < 32; ++i) high[i / 8] = static_cast<std::uint8_t>(high[i / 8] | ((codes[i] >> 4) << (i % 8)));
  return high;
}

/// An affine fit rounded to what the file holds.
struct HalfAffine {
  F16 d;
  F16 m;
};
HalfAffine fit_half_affine(const float* values, int highest) noexcept {
  const AffineFit fit = fit_affine(std::span(values, 32), highest, true);
  return {to_f16_saturate(fit.scale), to_f16_saturate(fit.offset)};
}

template <std::size_t kElements, class Block, class EncodeOne>
void encode_blocks(const float* values, std::size_t n_blocks, std::byte* blocks, EncodeOne encode_one) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const Block block = encode_one(values + i * kElements);
    store_block(block, blocks + i * sizeof(Block));
  }
}

}  // namespace

void unpack_q1_0(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ1_0>(block);
  std::fill_n(out.scale.begin(), 4, to_f32(b.d));
  for (std::size_t i = 0; i < 16; ++i) {
    // A clear bit gives 0xFF, which is -1; a set bit 0x01.
    const std::uint64_t clear = spread_bits(static_cast<std::uint8_t>(~b.bits[i])) >> 7;
    store_eight((clear * 0xFF) | kOneInEachByte, out.quants.data() + 8 * i);
  }
}

void unpack_q2_0(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ2_0>(block);
  std::fill_n(out.scale.begin(), 2, to_f32(b.d));
  for (std::size_t i = 0; i < 16; ++i) std::memcpy(out.quants.data() + 4 * i, &kQ2Quads[b.quants[i]], 4);
}

void unpack_q4_0(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ4_0>(block);
  out.scale[0] = to_f32(b.d);
  spread_nibbles<16, 8>(b.quants.data(), out.quants.data());
}

void unpack_q4_1(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ4_1>(block);
  out.scale[0] = to_f32(b.d);
  out.min[0] = to_f32(b.m);
  spread_nibbles<16, 0>(b.quants.data(), out.quants.data());
}

void unpack_q5_0(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ5_0>(block);
  out.scale[0] = to_f32(b.d);
  spread_five_bits<16>(b.quants, b.high, out);
}

void unpack_q5_1(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ5_1>(block);
  out.scale[0] = to_f32(b.d);
  out.min[0] = to_f32(b.m);
  spread_five_bits<0>(b.quants, b.high, out);
}

void unpack_q8_0(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockQ8_0>(block);
  out.scale[0] = to_f32(b.d);
  std::copy(b.quants.begin(), b.quants.end(), out.quants.begin());
}

void encode_q1_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  encode_blocks<128, BlockQ1_0>(values, n_blocks, blocks, [](const float* x) noexcept {
    // For a fixed choice of signs the mean magnitude is the least-squares scale.
    float sum = 0.0f;
    for (std::size_t i = 0; i < 128; ++i) sum += std::abs(x[i]) / 128.0f;
    BlockQ1_0 block{.d = to_f16_saturate(sum), .bits = {}};
    for (std::size_t i = 0; i < 128; ++i) {
      block.bits[i / 8] = static_cast<std::uint8_t>(block.bits[i / 8] | (static_cast<unsigned>(x[i] >= 0.0f) << (i % 8)));
    }
    return block;
  });
}

void encode_q2_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  encode_blocks<64, BlockQ2_0>(values, n_blocks, blocks, [](const float* x) noexcept {
    BlockQ2_0 block{.d = to_f16_saturate(fit_small_range(std::span(x, 64), 2)), .quants = {}};
    const float id = inverse(to_f32(block.d));
    for (std::size_t i = 0; i < 64; ++i) {
      const auto code = static_cast<unsigned>(quantize(x[i] * id, -1, 2) + 1);
      block.quants[i / 4] = static_cast<std::uint8_t>(block.quants[i / 4] | (code << (2 * (i % 4))));
    }
    return block;
  });
}

void encode_q4_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  encode_blocks<32, BlockQ4_0>(values, n_blocks, blocks, [](const float* x) noexcept {
    BlockQ4_0 block{.d = to_f16_saturate(fit_scale(std::span(x, 32), -8, 7)), .quants = {}};
    pack_nibbles<16>(codes_of(x, block.d, F16{}, -8, 7).data(), block.quants.data());
    return block;
  });
}

void encode_q4_1(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  encode_blocks<32, BlockQ4_1>(values, n_blocks, blocks, [](const float* x) noexcept {
    const HalfAffine fit = fit_half_affine(x, 15);
    BlockQ4_1 block{.d = fit.d, .m = fit.m, .quants = {}};
    pack_nibbles<16>(codes_of(x, fit.d, fit.m, 0, 15).data(), block.quants.data());
    return block;
  });
}

void encode_q5_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  encode_blocks<32, BlockQ5_0>(values, n_blocks, blocks, [](const float* x) noexcept {
    const F16 d = to_f16_saturate(fit_scale(std::span(x, 32), -16, 15));
    const auto codes = codes_of(x, d, F16{}, -16, 15);
    BlockQ5_0 block{.d = d, .high = pack_fifth_bits(codes), .quants = {}};
    pack_nibbles<16>(codes.data(), block.quants.data());
    return block;
  });
}

void encode_q5_1(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  encode_blocks<32, BlockQ5_1>(values, n_blocks, blocks, [](const float* x) noexcept {
    const HalfAffine fit = fit_half_affine(x, 31);
    const auto codes = codes_of(x, fit.d, fit.m, 0, 31);
    BlockQ5_1 block{.d = fit.d, .m = fit.m, .high = pack_fifth_bits(codes), .quants = {}};
    pack_nibbles<16>(codes.data(), block.quants.data());
    return block;
  });
}

void encode_q8_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  encode_blocks<32, BlockQ8_0>(values, n_blocks, blocks, [](const float* x) noexcept {
    float largest = 0.0f;
    for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
    BlockQ8_0 block{.d = to_f16_saturate(largest / 127.0f), .quants = {}};
    const float id = inverse(to_f32(block.d));
    for (std::size_t i = 0; i < 32; ++i) block.quants[i] = static_cast<std::int8_t>(quantize(x[i] * id, -127, 127));
    return block;
  });
}

}  // namespace quench
