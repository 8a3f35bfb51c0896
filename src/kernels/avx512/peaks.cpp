// A measure of the processor: there is nothing to emulate.
#ifndef QUENCH_EMULATE_AVX512

#include "kernels/generic/peaks.h"

#include "kernels/avx512/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx512 {
namespace {

// Dot products and fma have latencies of 4 to 5 and start at most twice a cycle: 10 chains, and 2 for a late one.
constexpr int kChains = 12;

std::uint64_t int8_dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 64;
  const __m512i weights = _mm512_set1_epi8(3);
  __m512i x = _mm512_set1_epi8(5);
  const auto step = [&](__m512i& sum) __attribute__((always_inline)) {
    sum = _mm512_dpbusd_epi32(sum, weights, x);
    asm volatile("" : "+v"(x), "+v"(sum));
  };
  generic::run_chains<kChains>(rounds, _mm512_setzero_si512(), step);
  return rounds * kChains * kOperations;
}

std::uint64_t f32_fma_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 16;
  const __m512 weights = _mm512_set1_ps(0.5f);
  __m512 x = _mm512_set1_ps(0.25f);
  const auto step = [&](__m512& sum) __attribute__((always_inline)) {
    sum = _mm512_fmadd_ps(weights, x, sum);
    asm volatile("" : "+v"(x), "+v"(sum));
  };
  generic::run_chains<kChains>(rounds, _mm512_setzero_ps(), step);
  return rounds * kChains * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table) {
  table.int8_dot_peak = int8_dot_peak;
  table.f32_fma_peak = f32_fma_peak;
}

}  // namespace quench::avx512

#endif
