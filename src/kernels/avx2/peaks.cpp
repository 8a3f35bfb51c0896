#include "kernels/avx2/lanes.h"
#include "kernels/fillers.h"
#include "kernels/generic/repeat.h"

namespace quench::avx2 {
namespace {

// fma has a latency of 4 and starts twice a cycle: 8 chains would do, 12 leave room for a late one; with two operands they fit 16
// registers.
constexpr int kChains = 12;

/// Unsigned times signed bytes, pairs added, summed as int16: the most that AVX2 does, for weights of up to 4 bits. Wider ones need more
/// instructions for the same products.
std::uint64_t int8_dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 32;
  __m256i sums[kChains] = {};
  const __m256i weights = _mm256_set1_epi8(3);
  __m256i x = _mm256_set1_epi8(5);
  for (std::size_t round = 0; round < rounds; ++round) {
    generic::repeat<kChains>([&](auto i) __attribute__((always_inline)) {
      asm volatile("" : "+x"(x));  // the product may have changed: it is computed every time
      sums[i] = _mm256_add_epi16(sums[i], _mm256_maddubs_epi16(weights, x));
    });
  }
  for (const __m256i& sum : sums) asm volatile("" : : "x"(sum));
  return rounds * kChains * kOperations;
}

std::uint64_t f32_fma_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 8;
  __m256 sums[kChains] = {};
  const __m256 weights = _mm256_set1_ps(0.5f);
  __m256 x = _mm256_set1_ps(0.25f);
  for (std::size_t round = 0; round < rounds; ++round) {
    generic::repeat<kChains>([&](auto i) __attribute__((always_inline)) {
      asm volatile("" : "+x"(x));
      sums[i] = _mm256_fmadd_ps(weights, x, sums[i]);
    });
  }
  for (const __m256& sum : sums) asm volatile("" : : "x"(sum));
  return rounds * kChains * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table) {
  table.int8_dot_peak = int8_dot_peak;
  table.f32_fma_peak = f32_fma_peak;
}

}  // namespace quench::avx2
