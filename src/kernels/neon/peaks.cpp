#include "kernels/fillers.h"
#include "kernels/generic/repeat.h"
#include "kernels/neon/lanes.h"

namespace quench::neon {
namespace {

// Latency 4, up to four starts a cycle: 16 chains; with two operands they fit 32 registers.
constexpr int kChains = 16;

std::uint64_t int8_dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 16;
  int32x4_t sums[kChains] = {};
  const int8x16_t weights = vdupq_n_s8(3);
  int8x16_t x = vdupq_n_s8(5);
  for (std::size_t round = 0; round < rounds; ++round) {
    generic::repeat<kChains>([&](auto i) __attribute__((always_inline)) {
      asm volatile("" : "+w"(x));  // x may have changed: no product is left out
      sums[i] = vdotq_s32(sums[i], weights, x);
    });
  }
  for (const int32x4_t& sum : sums) asm volatile("" : : "w"(sum));
  return rounds * kChains * kOperations;
}

std::uint64_t f32_fma_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 4;
  float32x4_t sums[kChains] = {};
  const float32x4_t weights = vdupq_n_f32(0.5f);
  float32x4_t x = vdupq_n_f32(0.25f);
  for (std::size_t round = 0; round < rounds; ++round) {
    generic::repeat<kChains>([&](auto i) __attribute__((always_inline)) {
      asm volatile("" : "+w"(x));
      sums[i] = vfmaq_f32(sums[i], weights, x);
    });
  }
  for (const float32x4_t& sum : sums) asm volatile("" : : "w"(sum));
  return rounds * kChains * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table) {
  table.int8_dot_peak = int8_dot_peak;
  table.f32_fma_peak = f32_fma_peak;
}

}  // namespace quench::neon
