#pragma once

#include <array>
#include <cstddef>

namespace quench::spec {

/// Partial results of a reduction over a row: element i goes to partial i mod 16, whatever the width of the registers.
using Partials = std::array<float, 16>;

/// p[i] += p[i + 8], then + 4, + 2, + 1.
inline float fold_sum(Partials p) noexcept {
  for (std::size_t half = 8; half >= 1; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) p[i] = p[i] + p[i + half];
  }
  return p[0];
}

/// The same fold with a > b ? a : b.
inline float fold_max(Partials p) noexcept {
  for (std::size_t half = 8; half >= 1; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) p[i] = p[i] > p[i + half] ? p[i] : p[i + half];
  }
  return p[0];
}

}  // namespace quench::spec
