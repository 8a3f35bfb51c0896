#include "quant/i_quants.h"

#include <array>
#include <cstdint>

#include "base/float16.h"
#include "quant/block_layout.h"
#include "quant/grids.h"
#include "quant/sign_masks.h"
#include "quant/spread.h"

namespace quench {
namespace {

/// Eight positive bytes, negated where `signs` has a bit. No carry crosses a byte, because no byte is 0.
std::uint64_t with_signs(std::uint64_t magnitudes, std::uint8_t signs) noexcept {
  const std::uint64_t mask = kSignMasks[signs];
  return (magnitudes ^ mask) + (mask & kOneInEachByte);
}

/// Eight bytewise sums modulo 256: the low seven bits are added without a carry out of the byte, the top bit by exclusive or.
std::uint64_t add_bytes(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t kTop = kOneInEachByte << 7;
  return ((a & ~kTop) + (b & ~kTop)) ^ ((a ^ b) & kTop);
}

/// Eight quants of 8 x grid + 1, or - 1 (0xFF in each byte) when `negative` is 1. The sign is random: no branch.
std::uint64_t with_offset(std::uint64_t grid, unsigned negative) noexcept {
  return add_bytes(grid, kOneInEachByte * (1u + 0xFEu * negative));
}

std::int16_t odd_scale(unsigned stored) noexcept { return static_cast<std::int16_t>(2 * stored + 1); }

/// The sixteen 4-bit scales of sub-blocks of 16, as iq2_xs and iq2_s store them.
void unpack_nibble_scales(const Bytes<8>& scales, IntegerBlock& out) noexcept {
  for (std::size_t i = 0; i < 8; ++i) {
    out.sub_scale[2 * i] = odd_scale(scales[i] & 15u);
    out.sub_scale[2 * i + 1] = odd_scale(scales[i] >> 4);
  }
}

}  // namespace

// (0.5 + s) / 4 = (2s + 1) / 8: the sub-scale is the odd integer, the eighth goes into the scale. An eighth of an f16 is exact in f32.

void unpack_iq2_xxs(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockIq2_XXS>(block);
  out.scale[0] = to_f32(b.d) * 0.125f;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint32_t indices = b.words[4 * i] | (std::uint32_t{b.words[4 * i + 1]} << 16);
    const std::uint32_t signs = b.words[4 * i + 2] | (std::uint32_t{b.words[4 * i + 3]} << 16);
    out.sub_scale[i] = odd_scale(signs >> 28);
    for (unsigned l = 0; l < 4; ++l) {
      store_eight(with_signs(kIq2XxsGrid[(indices >> (8 * l)) & 255], kEvenSigns[(signs >> (7 * l)) & 127]),
                  out.quants.data() + 8 * (4 * i + l));
    }
  }
}

void unpack_iq2_xs(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockIq2_XS>(block);
  out.scale[0] = to_f32(b.d) * 0.125f;
  unpack_nibble_scales(b.scales, out);
  for (std::size_t i = 0; i < 32; ++i)
    store_eight(with_signs(kIq2XsGrid[b.words[i] & 511], kEvenSigns[b.words[i] >> 9]), out.quants.data() + 8 * i);
}

void unpack_iq2_s(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockIq2_S>(block);
  out.scale[0] = to_f32(b.d) * 0.125f;
  unpack_nibble_scales(b.scales, out);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned high = (static_cast<unsigned>(b.high[i / 4]) >> (2 * (i % 4))) & 3;
    store_eight(with_signs(kIq2SGrid[b.low[i] | (high << 8)], b.signs[i]), out.quants.data() + 8 * i);
  }
}

void unpack_iq3_xxs(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockIq3_XXS>(block);
  out.scale[0] = to_f32(b.d) * 0.25f;  // (0.5 + s) / 2 = (2s + 1) / 4
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint32_t signs = b.words[2 * i] | (std::uint32_t{b.words[2 * i + 1]} << 16);
    out.sub_scale[i] = odd_scale(signs >> 28);
    for (unsigned l = 0; l < 4; ++l) {
      const std::size_t group = 4 * i + l;
      const std::uint64_t low = kIq3XxsGrid[b.indices[2 * group]];
      const std::uint64_t high = kIq3XxsGrid[b.indices[2 * group + 1]];
      store_eight(with_signs(low | (high << 32), kEvenSigns[(signs >> (7 * l)) & 127]), out.quants.data() + 8 * group);
    }
  }
}

void unpack_iq3_s(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockIq3_S>(block);
  out.scale[0] = to_f32(b.d);
  for (std::size_t i = 0; i < 8; ++i) out.sub_scale[i] = odd_scale((static_cast<unsigned>(b.scales[i / 2]) >> (4 * (i % 2))) & 15);
  for (std::size_t group = 0; group < 32; ++group) {
    const unsigned bits = static_cast<unsigned>(b.high[group / 4]) >> (2 * (group % 4));
    const std::uint64_t low = kIq3SGrid[b.low[2 * group] | ((bits & 1) << 8)];
    const std::uint64_t high = kIq3SGrid[b.low[2 * group + 1] | ((bits & 2) << 7)];
    store_eight(with_signs(low | (high << 32), b.signs[group]), out.quants.data() + 8 * group);
  }
}

// grid +- 1/8 = (8 x grid +- 1) / 8: quants are the eighths.

void unpack_iq1_s(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockIq1_S>(block);
  out.scale[0] = to_f32(b.d) * 0.125f;
  for (std::size_t i = 0; i < 8; ++i) {
    const unsigned high = b.high[i];
    out.sub_scale[i] = odd_scale((high >> 12) & 7);
    for (std::size_t l = 0; l < 4; ++l) {
      const unsigned index = b.low[4 * i + l] | (((high >> (3 * l)) & 7) << 8);
      store_eight(with_offset(kIq1SGrid[index], high >> 15), out.quants.data() + 8 * (4 * i + l));
    }
  }
}

void unpack_iq1_m(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockIq1_M>(block);
  unsigned d = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const unsigned word = b.scales[i];
    d |= (word >> 12) << (4 * i);
    for (std::size_t j = 0; j < 4; ++j) out.sub_scale[4 * i + j] = odd_scale((word >> (3 * j)) & 7);
  }
  out.scale[0] = to_f32(F16{static_cast<std::uint16_t>(d)}) * 0.125f;
  for (std::size_t group = 0; group < 32; ++group) {
    const unsigned high = static_cast<unsigned>(b.high[group / 2]) >> (4 * (group % 2));
    store_eight(with_offset(kIq1SGrid[b.low[group] | ((high & 7) << 8)], (high >> 3) & 1), out.quants.data() + 8 * group);
  }
}

}  // namespace quench
