#pragma once

namespace quench {

/// The numbers of the one exponential that every instruction set computes (docs/numeric-contract.md):
///   t = fma(x, log2 e, magic)       adding 1.5 x 2^23 rounds x log2 e to the nearest integer n, which is then in t's low bits
///   r = x - n ln 2                  in two steps, |r| <= ln 2 / 2
///   e^r - 1 ~ r + r^2 q(r)          q: minimax fit of degree 4, relative error 3.6e-9 (scripts/fit_exp.py)
///   e^x = 2^n + 2^n (e^r - 1)       one fma
namespace exp_constants {

inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kMagic = 0x1.8p+23f;
inline constexpr float kLn2High = 0x1.62e430p-1f;
inline constexpr float kLn2Low = -0x1.05c610p-29f;
inline constexpr float kQ0 = 0x1.fffffcp-2f;
inline constexpr float kQ1 = 0x1.555492p-3f;
inline constexpr float kQ2 = 0x1.5558f2p-5f;
inline constexpr float kQ3 = 0x1.123a20p-7f;
inline constexpr float kQ4 = 0x1.6a23d0p-10f;

/// Below, exp is +0: far from subnormals, and a weight of 1.6e-28 beside one of 1 changes no f32 sum.
inline constexpr float kExpLowest = -64.0f;
/// Above, exp stays at its value here, 2.4e38: n is at most 127, so nothing overflows.
inline constexpr float kExpHighest = 88.375f;
/// tanh(a) is 1 in f32 from a = 9.02; 2a is clamped here.
inline constexpr float kTanhHighest = 64.0f;

/// 2u = x (kGelu0 + kGelu1 x^2) = 2 sqrt(2 / pi) (x + 0.044715 x^3): GELU's tanh form is x sigmoid(2u).
inline constexpr float kGelu0 = 0x1.988454p+0f;
inline constexpr float kGelu1 = 0x1.2444f2p-4f;

}  // namespace exp_constants
}  // namespace quench
