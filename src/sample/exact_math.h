#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace quench {

/// exp, log and pow from additions and multiplications alone, so that a seed gives the same text on every machine; the C library's
/// own differ between versions and processors in the last bit. Error below 2 units in the last place over the range in use.

/// Two doubles in one vector register, on every processor that quench knows.
using DoublePair = double __attribute__((vector_size(16)));

namespace detail {

template <typename Real>
struct BitsOf {
  using Type = std::uint64_t;
};
template <>
struct BitsOf<DoublePair> {
  using Type = std::uint64_t __attribute__((vector_size(16)));
};

/// x = n ln 2 + r with |r| <= ln 2 / 2: adding 1.5 * 2^52 rounds to the integer n and leaves it in the low bits, from where a shift
/// puts it into the exponent. The Taylor terms end where (ln 2 / 2)^14 / 14! = 4e-18.
template <typename Real>
[[nodiscard]] inline Real exact_exp(Real x) noexcept {
  using Bits = typename BitsOf<Real>::Type;
  constexpr double kRound = 0x1.8p52;
  constexpr double kLog2E = 0x1.71547652b82fep0;
  constexpr double kLn2High = 0x1.62e42fefa0000p-1;  // 33 bits: n times it is exact
  constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
  const Real shifted = x * kLog2E + kRound;
  const Real n = shifted - kRound;
  const Real r = (x - n * kLn2High) - n * kLn2Low;
  Real sum = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  const Real result = std::bit_cast<Real>(std::bit_cast<Bits>(sum) + (std::bit_cast<Bits>(shifted) << 52));
  return x < -64.0 ? Real{} : result;
}

}  // namespace detail

/// e^x for x <= 700; +0 below -64, where a probability no longer matters. NaN gives NaN.
[[nodiscard]] inline double exact_exp(double x) noexcept { return detail::exact_exp(x); }
/// The same bits, two at a time.
[[nodiscard]] inline DoublePair exact_exp(DoublePair x) noexcept { return detail::exact_exp(x); }

/// ln x for positive, normal x; -infinity for anything else.
///
/// x = 2^n m with m in [1/sqrt 2, sqrt 2); ln m = 2 artanh s, s = (m - 1) / (m + 1), |s| <= 0.172. The series ends where
/// s^24 / 25 = 2e-20.
[[nodiscard]] inline double exact_log(double x) noexcept {
  constexpr double kLn2High = 0x1.62e42fefa0000p-1;
  constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
  constexpr double kSqrt2 = 0x1.6a09e667f3bcdp0;
  if (!(x >= std::numeric_limits<double>::min())) return -std::numeric_limits<double>::infinity();
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int n = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (m > kSqrt2) {
    m *= 0.5;
    n += 1;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double series = 0.0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * square;
  return n * kLn2High + (2.0 * s + (2.0 * s * series + n * kLn2Low));
}

/// base^exponent for base >= 0; 0^0 is 1.
[[nodiscard]] inline double exact_pow(double base, double exponent) noexcept {
  if (exponent == 0.0 || base == 1.0) return 1.0;
  if (!(base > 0.0)) return 0.0;
  return exact_exp(exponent * exact_log(base));
}

}  // namespace quench
