#include <cmath>

#include "kernels/fillers.h"

/// The definition of activation quantization (docs/numeric-contract.md).
namespace quench::spec {
namespace {

constexpr std::size_t kSumGroup = 16;

/// d = absmax / 127; q = round-half-even(x / d) within +-127; d = 0 gives 0.
template <std::size_t kBlock>
void quantize_block(const float* x, std::size_t n, std::int8_t* quants, float* scales, std::int16_t* sums) noexcept {
  for (std::size_t block = 0; block < n / kBlock; ++block) {
    const float* in = x + block * kBlock;
    float absmax = 0.0f;
    for (std::size_t i = 0; i < kBlock; ++i) absmax = std::fabs(in[i]) > absmax ? std::fabs(in[i]) : absmax;
    const float d = absmax / 127.0f;
    scales[block] = d;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const float ratio = d == 0.0f ? 0.0f : in[i] / d;
      const float rounded = std::nearbyint(ratio);
      // Only a subnormal d, itself rounded, can push the ratio beyond 127.
      const float clamped = rounded > 127.0f ? 127.0f : (rounded < -127.0f ? -127.0f : rounded);
      quants[block * kBlock + i] = static_cast<std::int8_t>(clamped);
    }
  }
  for (std::size_t group = 0; group < n / kSumGroup; ++group) {
    int sum = 0;
    for (std::size_t i = 0; i < kSumGroup; ++i) sum += quants[group * kSumGroup + i];
    sums[group] = static_cast<std::int16_t>(sum);
  }
}

/// Rounds to bf16; what is then below 2^-56 becomes +0, so that no product of two of them is subnormal.
void round_bf16(const float* x, std::size_t n, BF16* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const BF16 rounded = to_bf16(x[i]);
    out[i] = std::fabs(to_f32(rounded)) < 0x1p-56f ? BF16{} : rounded;
  }
}

}  // namespace

void fill_quantize(KernelTable& table) {
  table.quantize_block32 = quantize_block<32>;
  table.quantize_block256 = quantize_block<256>;
  table.round_bf16 = round_bf16;
}

}  // namespace quench::spec
