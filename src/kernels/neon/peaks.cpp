#include "kernels/fillers.h"
#include "kernels/neon/lanes.h"

namespace quench::neon {
namespace {

// A latency of 4 and up to four starts a cycle: 16 chains; with two operands they fit 32 registers. The sums are variables of
// their own because GCC keeps an array in memory; the empty asm of every step says that x may have changed, so that no product is left out.
constexpr int kChains = 16;

std::uint64_t int8_dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 16;
  const int8x16_t weights = vdupq_n_s8(3);
  int8x16_t x = vdupq_n_s8(5);
  int32x4_t s0 = vdupq_n_s32(0), s1 = vdupq_n_s32(0), s2 = vdupq_n_s32(0), s3 = vdupq_n_s32(0), s4 = vdupq_n_s32(0), s5 = vdupq_n_s32(0),
            s6 = vdupq_n_s32(0), s7 = vdupq_n_s32(0), s8 = vdupq_n_s32(0), s9 = vdupq_n_s32(0), s10 = vdupq_n_s32(0), s11 = vdupq_n_s32(0),
            s12 = vdupq_n_s32(0), s13 = vdupq_n_s32(0), s14 = vdupq_n_s32(0), s15 = vdupq_n_s32(0);
  const auto step = [&](int32x4_t& sum) __attribute__((always_inline)) {
    sum = vdotq_s32(sum, weights, x);
    asm volatile("" : "+w"(x), "+w"(sum));
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
    step(s12);
    step(s13);
    step(s14);
    step(s15);
  }
  return rounds * kChains * kOperations;
}

std::uint64_t f32_fma_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * 4;
  const float32x4_t weights = vdupq_n_f32(0.5f);
  float32x4_t x = vdupq_n_f32(0.25f);
  float32x4_t s0 = vdupq_n_f32(0.0f), s1 = vdupq_n_f32(0.0f), s2 = vdupq_n_f32(0.0f), s3 = vdupq_n_f32(0.0f), s4 = vdupq_n_f32(0.0f),
              s5 = vdupq_n_f32(0.0f), s6 = vdupq_n_f32(0.0f), s7 = vdupq_n_f32(0.0f), s8 = vdupq_n_f32(0.0f), s9 = vdupq_n_f32(0.0f),
              s10 = vdupq_n_f32(0.0f), s11 = vdupq_n_f32(0.0f), s12 = vdupq_n_f32(0.0f), s13 = vdupq_n_f32(0.0f), s14 = vdupq_n_f32(0.0f),
              s15 = vdupq_n_f32(0.0f);
  const auto step = [&](float32x4_t& sum) __attribute__((always_inline)) {
    sum = vfmaq_f32(sum, weights, x);
    asm volatile("" : "+w"(x), "+w"(sum));
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
    step(s12);
    step(s13);
    step(s14);
    step(s15);
  }
  return rounds * kChains * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table) {
  table.int8_dot_peak = int8_dot_peak;
  table.f32_fma_peak = f32_fma_peak;
}

}  // namespace quench::neon
