#pragma once

#include "kernels/exp_constants.h"

namespace quench::generic {

/// kernels/spec/exp.h over lanes: the same operations in the same order.
template <typename L>
struct Exp {
  using F = typename L::F;

  [[gnu::always_inline]] static F exp(F x) noexcept {
    F scale;
    const F e = minus_one_reduced(L::min(L::set1(exp_constants::kExpHighest), x), scale);
    return L::select(L::lt(x, L::set1(exp_constants::kExpLowest)), L::zero(), L::fma(scale, e, scale));
  }

  [[gnu::always_inline]] static F sigmoid(F x) noexcept {
    const F one = L::set1(1.0f);
    return L::div(one, L::add(one, exp(L::neg(x))));
  }

  [[gnu::always_inline]] static F tanh(F x) noexcept {
    const F twice = L::mul(L::set1(2.0f), L::abs(x));
    F scale;
    const F e = minus_one_reduced(L::neg(L::min(L::set1(exp_constants::kTanhHighest), twice)), scale);
    const F expm1 = L::fma(scale, e, L::sub(scale, L::set1(1.0f)));
    const F magnitude = L::abs(L::div(L::neg(expm1), L::add(expm1, L::set1(2.0f))));
    const auto sign = L::and_i(L::bits(x), L::bits(L::set1(-0.0f)));
    return L::from_bits(L::or_i(L::bits(magnitude), sign));
  }

  [[gnu::always_inline]] static F soft_cap(F x, F cap) noexcept { return L::mul(cap, tanh(L::div(x, cap))); }

  [[gnu::always_inline]] static F silu(F x) noexcept { return L::mul(x, sigmoid(x)); }

  [[gnu::always_inline]] static F gelu(F x) noexcept {
    const F factor = L::fma(L::mul(x, x), L::set1(exp_constants::kGelu1), L::set1(exp_constants::kGelu0));
    return L::mul(x, sigmoid(L::mul(x, factor)));
  }

 private:
  [[gnu::always_inline]] static F minus_one_reduced(F x, F& scale) noexcept {
    using namespace exp_constants;
    const F t = L::fma(x, L::set1(kLog2E), L::set1(kMagic));
    const F n = L::sub(t, L::set1(kMagic));
    F r = L::fma(n, L::set1(-kLn2High), x);
    r = L::fma(n, L::set1(-kLn2Low), r);
    F q = L::fma(L::set1(kQ4), r, L::set1(kQ3));
    q = L::fma(q, r, L::set1(kQ2));
    q = L::fma(q, r, L::set1(kQ1));
    q = L::fma(q, r, L::set1(kQ0));
    scale = L::from_bits(L::add_i(L::template shift_left<23>(L::bits(t)), L::bits(L::set1(1.0f))));
    return L::fma(L::mul(r, r), q, r);
  }
};

}  // namespace quench::generic
