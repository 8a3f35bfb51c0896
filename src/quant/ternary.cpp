#include "quant/ternary.h"

#include <array>
#include <cstdint>
#include <span>

#include "base/float16.h"
#include "quant/block_layout.h"
#include "quant/scale_search.h"

namespace quench {
namespace {

constexpr std::array<std::uint8_t, 5> kPowersOfThree = {1, 3, 9, 27, 81};

// A tq1_0 block is three runs of `bytes` bytes with `digits` digits each: digit n of byte m is element digits-major, n x bytes + m.
struct TernaryRun {
  std::size_t first_byte;
  std::size_t bytes;
  std::size_t digits;
  std::size_t first_element;
};
constexpr std::array<TernaryRun, 3> kRuns = {{{0, 32, 5, 0}, {32, 16, 5, 160}, {48, 4, 4, 240}}};

/// One digit of each byte of a run. Multiplying by 3^n modulo 256 brings digit n to the top; times 3 / 256 reads it.
void unpack_digit(const std::uint8_t* packed, std::size_t bytes, std::uint8_t power, std::int8_t* quants) noexcept {
  for (std::size_t m = 0; m < bytes; ++m) {
    const unsigned top = static_cast<std::uint8_t>(packed[m] * power);
    quants[m] = static_cast<std::int8_t>(static_cast<int>((top * 3) >> 8) - 1);
  }
}

void set_unit_sub_scales(IntegerBlock& out) noexcept {
  for (std::size_t j = 0; j < 8; ++j) out.sub_scale[j] = 1;
}

/// f16 scale and the 256 digits 0, 1, 2 of a block of values.
struct Ternary {
  F16 d;
  std::array<std::uint8_t, 256> digits;
};
Ternary to_ternary(const float* values) noexcept {
  Ternary result;
  result.d = to_f16_saturate(fit_small_range(std::span(values, 256), 1));
  const float id = inverse(to_f32(result.d));
  for (std::size_t i = 0; i < 256; ++i) result.digits[i] = static_cast<std::uint8_t>(quantize(values[i] * id, -1, 1) + 1);
  return result;
}

}  // namespace

void unpack_tq1_0(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockTq1_0>(block);
  out.scale[0] = to_f32(b.d);
  set_unit_sub_scales(out);
  std::array<std::uint8_t, 52> packed;
  std::memcpy(packed.data(), b.quants.data(), b.quants.size());
  std::memcpy(packed.data() + b.quants.size(), b.high.data(), b.high.size());
  for (const TernaryRun& run : kRuns) {
    for (std::size_t n = 0; n < run.digits; ++n) {
      unpack_digit(packed.data() + run.first_byte, run.bytes, kPowersOfThree[n], out.quants.data() + run.first_element + n * run.bytes);
    }
  }
}

void unpack_tq2_0(const std::byte* block, IntegerBlock& out) noexcept {
  const auto b = load_block<BlockTq2_0>(block);
  out.scale[0] = to_f32(b.d);
  set_unit_sub_scales(out);
  for (std::size_t row = 0; row < 8; ++row) {
    const std::uint8_t* quants = b.quants.data() + 32 * (row / 4);
    const unsigned shift = 2 * (row % 4);
    for (std::size_t m = 0; m < 32; ++m) out.quants[32 * row + m] = static_cast<std::int8_t>(((quants[m] >> shift) & 3) - 1);
  }
}

void encode_tq1_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const Ternary ternary = to_ternary(values + 256 * i);
    std::array<std::uint8_t, 52> packed;
    for (const TernaryRun& run : kRuns) {
      for (std::size_t m = 0; m < run.bytes; ++m) {
        // The first digit is the most significant of five; a missing fifth counts as 0.
        unsigned number = 0;
        for (std::size_t n = 0; n < 5; ++n) {
          number = number * 3 + (n < run.digits ? ternary.digits[run.first_element + n * run.bytes + m] : 0u);
        }
        packed[run.first_byte + m] = static_cast<std::uint8_t>((number * 256 + 242) / 243);
      }
    }
    BlockTq1_0 block{.quants = {}, .high = {}, .d = ternary.d};
    std::memcpy(block.quants.data(), packed.data(), block.quants.size());
    std::memcpy(block.high.data(), packed.data() + block.quants.size(), block.high.size());
    store_block(block, blocks + i * sizeof(block));
  }
}

void encode_tq2_0(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const Ternary ternary = to_ternary(values + 256 * i);
    BlockTq2_0 block{.quants = {}, .d = ternary.d};
    for (std::size_t k = 0; k < 256; ++k) {
      auto& byte = block.quants[32 * (k / 128) + k % 32];
      byte = static_cast<std::uint8_t>(byte | (ternary.digits[k] << (2 * ((k / 32) % 4))));
    }
    store_block(block, blocks + i * sizeof(block));
  }
}

}  // namespace quench
