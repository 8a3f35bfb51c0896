#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/table.h"

/// spec/quantize.cpp for any lanes L. The largest magnitude and the sums of quants are exact in any order.
namespace quench::generic {

template <class L>
struct Quantize {
  using F = typename L::F;
  using I = typename L::I;
  static constexpr std::size_t kSumGroup = 16;

  template <std::size_t kBlock>
  static void blocks(const float* x, std::size_t n, std::int8_t* quants, float* scales, std::int16_t* sums) noexcept {
    for (std::size_t block = 0; block < n / kBlock; ++block) {
      const float* in = x + block * kBlock;
      const float d = largest<kBlock>(in) / 127.0f;
      scales[block] = d;
      for (std::size_t i = 0; i < kBlock; i += kSumGroup) {
        const std::size_t at = block * kBlock + i;
        sums[at / kSumGroup] = static_cast<std::int16_t>(group(in + i, d, quants + at));
      }
    }
  }

  static void round_bf16(const float* x, std::size_t n, BF16* out) noexcept {
    std::size_t i = 0;
    for (; i + L::kN <= n; i += L::kN) L::store_u16(reinterpret_cast<std::uint16_t*>(out + i), to_bf16_bits(L::loadu(x + i)));
    if (i == n) return;
    std::uint16_t last[L::kN];
    L::store_u16(last, to_bf16_bits(L::load_partial(x + i, n - i)));
    for (std::size_t j = 0; i + j < n; ++j) out[i + j].bits = last[j];
  }

  static void fill(KernelTable& table) noexcept {
    table.quantize_block32 = blocks<32>;
    table.quantize_block256 = blocks<256>;
    table.round_bf16 = round_bf16;
  }

 private:
  template <std::size_t kBlock>
  static float largest(const float* x) noexcept {
    F most = L::abs(L::loadu(x));
    for (std::size_t i = L::kN; i < kBlock; i += L::kN) most = L::max(L::abs(L::loadu(x + i)), most);
    float lanes[L::kN];
    L::storeu(lanes, most);
    float result = lanes[0];
    for (std::size_t i = 1; i < L::kN; ++i) result = lanes[i] > result ? lanes[i] : result;
    return result;
  }

  /// Quantizes 16 elements and returns the sum of their quants. Clamping before rounding gives the same as after.
  static std::int32_t group(const float* x, float d, std::int8_t* quants) noexcept {
    I sum = L::zero_i();
    for (std::size_t i = 0; i < kSumGroup; i += L::kN) {
      const F ratio = d == 0.0f ? L::zero() : L::div(L::loadu(x + i), L::set1(d));
      const F clamped = L::max(L::min(ratio, L::set1(127.0f)), L::set1(-127.0f));
      const I q = L::round_to_int(clamped);
      sum = L::add_i(sum, q);
      L::store_i8(quants + i, q);
    }
    return L::sum_lanes(sum);
  }

  /// Nearest, ties to even; magnitudes below 2^-56 become +0.
  static I to_bf16_bits(F x) noexcept {
    const I bits = L::bits(x);
    const I odd = L::and_i(L::template shift_right<16>(bits), L::set1_i(1));
    const I raised = L::add_i(L::add_i(bits, L::set1_i(0x7FFF)), odd);
    const F rounded = L::from_bits(L::and_i(raised, L::set1_i(static_cast<std::int32_t>(0xFFFF0000u))));
    return L::template shift_right<16>(L::bits(L::select(L::lt(L::abs(rounded), L::set1(0x1p-56f)), L::zero(), rounded)));
  }
};

}  // namespace quench::generic
