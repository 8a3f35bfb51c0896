#pragma once

#include <cstddef>

#include "kernels/generic/exp.h"
#include "kernels/generic/row_sum.h"
#include "kernels/table.h"

namespace quench::generic {

/// The operations of kernels/spec/rows.cpp over lanes. The last, short group of a row goes through the same arithmetic with its
/// missing lanes +0, which changes no partial sum: fma(0, 0, p) = p.
template <typename L>
struct Rows {
  using F = typename L::F;
  using E = Exp<L>;

  static void rms_norm(const float* x, const float* weight, std::size_t n, float eps, float* out) noexcept {
    Partials<L> squares(0.0f);
    for (std::size_t start = 0; start < n; start += 16) {
      for (std::size_t j = 0; j < Partials<L>::kRegisters; ++j) {
        const F v = load(x, start + j * L::kN, n);
        squares.lanes[j] = L::fma(v, v, squares.lanes[j]);
      }
    }
    const F mean = L::set1(squares.fold_sum() / static_cast<float>(n));
    const F inverse = L::div(L::set1(1.0f), L::sqrt(L::add(mean, L::set1(eps))));
    for (std::size_t i = 0; i < n; i += L::kN) {
      const F normed = L::mul(load(x, i, n), inverse);
      store(out, i, n, weight == nullptr ? normed : L::mul(normed, load(weight, i, n)));
    }
  }

  static void rope(float* head, const float* cos, const float* sin, std::size_t n_rot, RopeStyle style) noexcept {
    const std::size_t pairs = n_rot / 2;
    for (std::size_t i = 0; i < pairs; i += L::kN) {
      if (style == RopeStyle::kHalf) {
        F a = load(head, i, pairs);
        F b = load(head + pairs, i, pairs);
        rotate(a, b, load(cos, i, pairs), load(sin, i, pairs));
        store(head, i, pairs, a);
        store(head + pairs, i, pairs, b);
      } else {
        rotate_interleaved(head, cos, sin, i, pairs);
      }
    }
  }

  static void add(float* x, const float* y, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; i += L::kN) store(x, i, n, L::add(load(x, i, n), load(y, i, n)));
  }

  static void scale(float* x, float factor, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; i += L::kN) store(x, i, n, L::mul(load(x, i, n), L::set1(factor)));
  }

  static void silu_mul(const float* gate, const float* up, std::size_t n, float* out) noexcept {
    for (std::size_t i = 0; i < n; i += L::kN) store(out, i, n, L::mul(E::silu(load(gate, i, n)), load(up, i, n)));
  }

  static void gelu_mul(const float* gate, const float* up, std::size_t n, float* out) noexcept {
    for (std::size_t i = 0; i < n; i += L::kN) store(out, i, n, L::mul(E::gelu(load(gate, i, n)), load(up, i, n)));
  }

  static void soft_cap(float* x, float cap, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; i += L::kN) store(x, i, n, E::soft_cap(load(x, i, n), L::set1(cap)));
  }

  static void sigmoid(float* x, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; i += L::kN) store(x, i, n, E::sigmoid(load(x, i, n)));
  }

  static void softmax(float* x, std::size_t n) noexcept {
    const F max = L::set1(max_of(x, n));
    Partials<L> sums(0.0f);
    for (std::size_t start = 0; start < n; start += 16) {
      for (std::size_t j = 0; j < Partials<L>::kRegisters; ++j) {
        const std::size_t i = start + j * L::kN;
        if (i >= n) break;
        store(x, i, n, E::exp(L::sub(load(x, i, n), max)));
        // Read back, so that the lanes past the end are +0.
        sums.lanes[j] = L::add(sums.lanes[j], load(x, i, n));
      }
    }
    const F sum = L::set1(sums.fold_sum());
    for (std::size_t i = 0; i < n; i += L::kN) store(x, i, n, L::div(load(x, i, n), sum));
  }

  static void add_scaled(float* x, float factor, const float* y, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; i += L::kN) store(x, i, n, L::fma(L::set1(factor), load(y, i, n), load(x, i, n)));
  }

  static void fill(KernelTable& table) noexcept {
    table.rms_norm = rms_norm;
    table.rope = rope;
    table.add = add;
    table.scale = scale;
    table.silu_mul = silu_mul;
    table.gelu_mul = gelu_mul;
    table.soft_cap = soft_cap;
    table.sigmoid = sigmoid;
    table.softmax = softmax;
    table.add_scaled = add_scaled;
  }

 private:
  /// The largest element: whole groups of 16 in registers, the rest one by one, as the maximum does not depend on the order of finite
  /// values (of equal zeros either may be it; both give the same differences).
  static float max_of(const float* x, std::size_t n) noexcept {
    Partials<L> maxima(-__builtin_inff());
    std::size_t start = 0;
    for (; start + 16 <= n; start += 16) {
      for (std::size_t j = 0; j < Partials<L>::kRegisters; ++j) maxima.lanes[j] = L::max(maxima.lanes[j], L::loadu(x + start + j * L::kN));
    }
    float max = maxima.fold_max();
    for (; start < n; ++start) max = max > x[start] ? max : x[start];
    return max;
  }

  /// Elements [i, i + kN) of a row of n; those at n and beyond load as +0 and are not stored.
  [[gnu::always_inline]] static F load(const float* row, std::size_t i, std::size_t n) noexcept {
    if (i + L::kN <= n) return L::loadu(row + i);
    return i < n ? L::load_partial(row + i, n - i) : L::zero();
  }
  [[gnu::always_inline]] static void store(float* row, std::size_t i, std::size_t n, F v) noexcept {
    if (i + L::kN <= n) {
      L::storeu(row + i, v);
    } else {
      L::store_partial(row + i, v, n - i);
    }
  }

  [[gnu::always_inline]] static void rotate(F& a, F& b, F cos, F sin) noexcept {
    const F first = L::fma(a, cos, L::neg(L::mul(b, sin)));
    b = L::fma(a, sin, L::mul(b, cos));
    a = first;
  }

  /// Pairs [i, i + kN): neighbours are parted and joined through the stack, which costs less than the products it feeds.
  [[gnu::always_inline]] static void rotate_interleaved(float* head, const float* cos, const float* sin, std::size_t i,
                                                        std::size_t pairs) noexcept {
    alignas(64) float first[L::kN] = {};
    alignas(64) float second[L::kN] = {};
    const std::size_t count = pairs - i < L::kN ? pairs - i : L::kN;
    float* channels = head + 2 * i;
    for (std::size_t k = 0; k < count; ++k) {
      first[k] = channels[2 * k];
      second[k] = channels[2 * k + 1];
    }
    F a = L::load(first);
    F b = L::load(second);
    rotate(a, b, load(cos, i, pairs), load(sin, i, pairs));
    L::store(first, a);
    L::store(second, b);
    for (std::size_t k = 0; k < count; ++k) {
      channels[2 * k] = first[k];
      channels[2 * k + 1] = second[k];
    }
  }
};

}  // namespace quench::generic
