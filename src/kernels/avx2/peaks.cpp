#include "kernels/avx2/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx2 {
namespace {

// fma has a latency of 4 and starts twice a cycle: 8 chains; with two operands and a product they fit 16 registers. The sums are variables
// of their own because GCC keeps an array in memory; the empty asm of every step says that x may have changed, so that no product is left
// out.
constexpr int kChains = 8;

/// Unsigned times signed bytes, pairs added, summed as int16: the most that AVX2 does, for weights of up to 4 bits. Wider ones need more
/// instructions for the same products.
std::uint64_t int8_dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 32;
  const __m256i weights = _mm256_set1_epi8(3);
  __m256i x = _mm256_set1_epi8(5);
  __m256i s0 = _mm256_setzero_si256(), s1 = _mm256_setzero_si256(), s2 = _mm256_setzero_si256(), s3 = _mm256_setzero_si256(),
          s4 = _mm256_setzero_si256(), s5 = _mm256_setzero_si256(), s6 = _mm256_setzero_si256(), s7 = _mm256_setzero_si256();
  const auto step = [&](__m256i& sum) __attribute__((always_inline)) {
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(weights, x));
    asm volatile("" : "+x"(x), "+x"(sum));
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
  }
  return rounds * kChains * kOperations;
}

std::uint64_t f32_fma_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 8;
  const __m256 weights = _mm256_set1_ps(0.5f);
  __m256 x = _mm256_set1_ps(0.25f);
  __m256 s0 = _mm256_setzero_ps(), s1 = _mm256_setzero_ps(), s2 = _mm256_setzero_ps(), s3 = _mm256_setzero_ps(), s4 = _mm256_setzero_ps(),
         s5 = _mm256_setzero_ps(), s6 = _mm256_setzero_ps(), s7 = _mm256_setzero_ps();
  const auto step = [&](__m256& sum) __attribute__((always_inline)) {
    sum = _mm256_fmadd_ps(weights, x, sum);
    asm volatile("" : "+x"(x), "+x"(sum));
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
  }
  return rounds * kChains * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table) {
  table.int8_dot_peak = int8_dot_peak;
  table.f32_fma_peak = f32_fma_peak;
}

}  // namespace quench::avx2
