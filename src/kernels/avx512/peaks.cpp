// A measure of the processor: there is nothing to emulate.
#ifndef QUENCH_EMULATE_AVX512

#include "kernels/avx512/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx512 {
namespace {

// Dot products and fma have latencies of 4 to 5 and start at most twice a cycle: 10 chains, and 2 for a late one. The sums are variables of
// their own because GCC keeps an array in memory; the empty asm of every step says that x may have changed, so that no product is left out.
constexpr int kChains = 12;

std::uint64_t int8_dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 64;
  const __m512i weights = _mm512_set1_epi8(3);
  __m512i x = _mm512_set1_epi8(5);
  __m512i s0 = _mm512_setzero_si512(), s1 = _mm512_setzero_si512(), s2 = _mm512_setzero_si512(), s3 = _mm512_setzero_si512(),
          s4 = _mm512_setzero_si512(), s5 = _mm512_setzero_si512(), s6 = _mm512_setzero_si512(), s7 = _mm512_setzero_si512(),
          s8 = _mm512_setzero_si512(), s9 = _mm512_setzero_si512(), s10 = _mm512_setzero_si512(), s11 = _mm512_setzero_si512();
  const auto step = [&](__m512i& sum) __attribute__((always_inline)) {
    sum = _mm512_dpbusd_epi32(sum, weights, x);
    asm volatile("" : "+v"(x), "+v"(sum));
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    step(s0);
    step(s1);
    step(s2);
    step(s3);
    step(s4);
    step(s5);
    step(s6);
    step(s7);
    step(s8);
    step(s9);
    step(s10);
    step(s11);
  }
  return rounds * kChains * kOperations;
}

std::uint64_t f32_fma_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 16;
  const __m512 weights = _mm512_set1_ps(0.5f);
  __m512 x = _mm512_set1_ps(0.25f);
  __m512 s0 = _mm512_setzero_ps(), s1 = _mm512_setzero_ps(), s2 = _mm512_setzero_ps(), s3 = _mm512_setzero_ps(), s4 = _mm512_setzero_ps(),
         s5 = _mm512_setzero_ps(), s6 = _mm512_setzero_ps(), s7 = _mm512_setzero_ps(), s8 = _mm512_setzero_ps(), s9 = _mm512_setzero_ps(),
         s10 = _mm512_setzero_ps(), s11 = _mm512_setzero_ps();
  const auto step = [&](__m512& sum) __attribute__((always_inline)) {
    sum = _mm512_fmadd_ps(weights, x, sum);
    asm volatile("" : "+v"(x), "+v"(sum));
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    step(s0);
    step(s1);
    step(s2);
    step(s3);
    step(s4);
    step(s5);
    step(s6);
    step(s7);
    step(s8);
    step(s9);
    step(s10);
    step(s11);
  }
  return rounds * kChains * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table) {
  table.int8_dot_peak = int8_dot_peak;
  table.f32_fma_peak = f32_fma_peak;
}

}  // namespace quench::avx512

#endif
