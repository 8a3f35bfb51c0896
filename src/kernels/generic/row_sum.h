#pragma once

#include <cstddef>

namespace quench::generic {

/// The sixteen strided partial results of a row in registers: one of 16 lanes, two of 8, or four of 4 (kernels/spec/row_sum.h).
template <typename L>
struct Partials {
  using F = typename L::F;
  static constexpr std::size_t kRegisters = 16 / L::kN;
  F lanes[kRegisters];

  [[gnu::always_inline]] explicit Partials(float start) noexcept {
    for (std::size_t j = 0; j < kRegisters; ++j) lanes[j] = L::set1(start);
  }

  [[gnu::always_inline]] float fold_sum() const noexcept {
    if constexpr (requires { L::fold_sum(lanes[0]); }) return L::fold_sum(lanes[0]);
    return fold([](float a, float b) noexcept { return a + b; });
  }
  [[gnu::always_inline]] float fold_max() const noexcept {
    if constexpr (requires { L::fold_max(lanes[0]); }) return L::fold_max(lanes[0]);
    return fold([](float a, float b) noexcept { return a > b ? a : b; });
  }

 private:
  template <typename Combine>
  [[gnu::always_inline]] float fold(const Combine& combine) const noexcept {
    alignas(64) float p[16];
    for (std::size_t j = 0; j < kRegisters; ++j) L::store(p + j * L::kN, lanes[j]);
    for (std::size_t half = 8; half >= 1; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) p[i] = combine(p[i], p[i + half]);
    }
    return p[0];
  }
};

}  // namespace quench::generic
