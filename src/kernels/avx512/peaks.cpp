// A measure of the processor: there is nothing to emulate.
#ifndef QUENCH_EMULATE_AVX512

#include "kernels/avx512/lanes.h"
#include "kernels/fillers.h"
#include "kernels/generic/repeat.h"

namespace quench::avx512 {
namespace {

// Dot products and fma have latencies of 4 to 5 and start twice a cycle: 10 chains would do; with two operands 16 fit 32 registers.
constexpr int kChains = 16;

std::uint64_t int8_dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 64;
  __m512i sums[kChains] = {};
  const __m512i weights = _mm512_set1_epi8(3);
  __m512i x = _mm512_set1_epi8(5);
  for (std::size_t round = 0; round < rounds; ++round) {
    generic::repeat<kChains>([&](auto i) __attribute__((always_inline)) {
      asm volatile("" : "+v"(x));  // x may have changed: no product is left out
      sums[i] = _mm512_dpbusd_epi32(sums[i], weights, x);
    });
  }
  for (const __m512i& sum : sums) asm volatile("" : : "v"(sum));
  return rounds * kChains * kOperations;
}

std::uint64_t f32_fma_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 16;
  __m512 sums[kChains] = {};
  const __m512 weights = _mm512_set1_ps(0.5f);
  __m512 x = _mm512_set1_ps(0.25f);
  for (std::size_t round = 0; round < rounds; ++round) {
    generic::repeat<kChains>([&](auto i) __attribute__((always_inline)) {
      asm volatile("" : "+v"(x));
      sums[i] = _mm512_fmadd_ps(weights, x, sums[i]);
    });
  }
  for (const __m512& sum : sums) asm volatile("" : : "v"(sum));
  return rounds * kChains * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table) {
  table.int8_dot_peak = int8_dot_peak;
  table.f32_fma_peak = f32_fma_peak;
}

}  // namespace quench::avx512

#endif
