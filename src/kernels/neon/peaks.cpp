#include "kernels/generic/peaks.h"

#include "kernels/fillers.h"
#include "kernels/neon/lanes.h"

namespace quench::neon {
namespace {

// A latency of 4 and up to four starts a cycle: 16 chains; with two operands they fit 32 registers.
constexpr int kChains = 16;

std::uint64_t int8_dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 16;
  const int8x16_t weights = vdupq_n_s8(3);
  int8x16_t x = vdupq_n_s8(5);
  const auto step = [&](int32x4_t& sum) __attribute__((always_inline)) {
    sum = vdotq_s32(sum, weights, x);
    asm volatile("" : "+w"(x), "+w"(sum));
  };
  generic::run_chains<kChains>(rounds, vdupq_n_s32(0), step);
  return rounds * kChains * kOperations;
}

std::uint64_t f32_fma_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 4;
  const float32x4_t weights = vdupq_n_f32(0.5f);
  float32x4_t x = vdupq_n_f32(0.25f);
  const auto step = [&](float32x4_t& sum) __attribute__((always_inline)) {
    sum = vfmaq_f32(sum, weights, x);
    asm volatile("" : "+w"(x), "+w"(sum));
  };
  generic::run_chains<kChains>(rounds, vdupq_n_f32(0.0f), step);
  return rounds * kChains * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table) {
  table.int8_dot_peak = int8_dot_peak;
  table.f32_fma_peak = f32_fma_peak;
}

}  // namespace quench::neon
