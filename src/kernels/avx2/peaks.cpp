#include "kernels/generic/peaks.h"

#include "kernels/avx2/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx2 {
namespace {

// fma has a latency of 4 and starts twice a cycle: 8 chains; with two operands and a product they fit 16 registers.
constexpr int kChains = 8;

/// Unsigned times signed bytes, pairs added, summed as int16: the most that AVX2 does, for weights of up to 4 bits. Wider ones need more
/// instructions for the same products.
std::uint64_t int8_dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 32;
  const __m256i weights = _mm256_set1_epi8(3);
  __m256i x = _mm256_set1_epi8(5);
  const auto step = [&](__m256i& sum) __attribute__((always_inline)) {
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(weights, x));
    asm volatile("" : "+x"(x), "+x"(sum));
  };
  generic::run_chains<kChains>(rounds, _mm256_setzero_si256(), step);
  return rounds * kChains * kOperations;
}

std::uint64_t f32_fma_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 8;
  const __m256 weights = _mm256_set1_ps(0.5f);
  __m256 x = _mm256_set1_ps(0.25f);
  const auto step = [&](__m256& sum) __attribute__((always_inline)) {
    sum = _mm256_fmadd_ps(weights, x, sum);
    asm volatile("" : "+x"(x), "+x"(sum));
  };
  generic::run_chains<kChains>(rounds, _mm256_setzero_ps(), step);
  return rounds * kChains * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table) {
  table.int8_dot_peak = int8_dot_peak;
  table.f32_fma_peak = f32_fma_peak;
}

}  // namespace quench::avx2
