#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/exp_constants.h"

namespace quench::spec {

/// x = n ln 2 + r; returns e^r - 1 and sets `scale` to 2^n. |x| <= 88.375.
inline float exp_minus_one_reduced(float x, float& scale) noexcept {
  using namespace exp_constants;
  const float t = __builtin_fmaf(x, kLog2E, kMagic);
  const float n = t - kMagic;
  float r = __builtin_fmaf(n, -kLn2High, x);
  r = __builtin_fmaf(n, -kLn2Low, r);
  float q = __builtin_fmaf(kQ4, r, kQ3);
  q = __builtin_fmaf(q, r, kQ2);
  q = __builtin_fmaf(q, r, kQ1);
  q = __builtin_fmaf(q, r, kQ0);
  scale = std::bit_cast<float>((std::bit_cast<std::uint32_t>(t) << 23) + std::bit_cast<std::uint32_t>(1.0f));
  return __builtin_fmaf(r * r, q, r);
}

/// e^x within 1.01 ulp on [-64, 88.375]; +0 below, e^88.375 above. A NaN stays one.
inline float exp(float x) noexcept {
  using namespace exp_constants;
  const float bounded = kExpHighest < x ? kExpHighest : x;
  float scale = 0.0f;
  const float e = exp_minus_one_reduced(bounded, scale);
  const float value = __builtin_fmaf(scale, e, scale);
  return x < kExpLowest ? 0.0f : value;
}

inline float sigmoid(float x) noexcept { return 1.0f / (1.0f + exp(-x)); }

/// With E = e^-2|x| - 1: tanh |x| = -E / (E + 2). E comes from the reduced e^r - 1, so nothing cancels near 0, and the sign is
/// put back last: tanh(-x) = -tanh(x) bit for bit.
inline float tanh(float x) noexcept {
  using namespace exp_constants;
  const float twice = 2.0f * std::fabs(x);
  const float bounded = kTanhHighest < twice ? kTanhHighest : twice;
  float scale = 0.0f;
  const float e = exp_minus_one_reduced(-bounded, scale);
  const float expm1 = __builtin_fmaf(scale, e, scale - 1.0f);
  return std::copysign(-expm1 / (expm1 + 2.0f), x);
}

inline float soft_cap(float x, float cap) noexcept { return cap * tanh(x / cap); }

/// x sigmoid(2u) = x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3).
inline float gelu(float x) noexcept {
  using namespace exp_constants;
  return x * sigmoid(x * __builtin_fmaf(x * x, kGelu1, kGelu0));
}

inline float silu(float x) noexcept { return x * sigmoid(x); }

}  // namespace quench::spec
