#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"
#include "kernels/generic/blocks.h"

/// Integer dot products of groups of elements with a group of tokens, and how they enter the float sums: what linear layers and the scores
/// of a q8_0 cache share.
namespace quench::generic {

/// The rows of activations that a group of tokens multiplies with, at their starts.
template <int kTokens>
struct TokenGroup {
  const std::int8_t* quants[kTokens];
  const float* scales[kTokens];
  const std::int16_t* sums[kTokens];

  TokenGroup() = default;
  [[gnu::always_inline]] TokenGroup(const Activations& x, std::size_t first) noexcept {
    for (int t = 0; t < kTokens; ++t) {
      const std::size_t row = first + static_cast<std::size_t>(t);
      quants[t] = x.quants_row(row);
      scales[t] = x.scales_row(row);
      sums[t] = x.sums_row(row);
    }
  }
};

template <class V, int kSubs, int kTokens>
using Accumulators = typename V::F[kSubs][kTokens];

/// kFactor x the sum of a group's quants, in every lane.
template <class V, int kChunks, int kFactor>
[[gnu::always_inline]] inline typename V::I group_sum(const std::int16_t* sums) noexcept {
  if constexpr (kChunks == 4) return V::set1_i(kFactor * sums[0]);
  constexpr std::uint32_t kHalf = static_cast<std::uint16_t>(kFactor);
  return V::pair_dot(V::zero_i(), V::set1_i(static_cast<std::int32_t>(kHalf << 16 | kHalf)), sums);
}

/// One group of 32 (or 16) elements that starts at k: acc = fma(w_scale * x_scale, float(dot), acc), then the minimum.
template <class V, class View, int kSubs, int kTokens>
[[gnu::always_inline]] inline void add_group(const View& view, const TokenGroup<kTokens>& x, std::size_t k,
                                             Accumulators<V, kSubs, kTokens>& acc) noexcept {
  const std::int8_t* quants[kTokens];
  typename V::F x_scales[kTokens];
  typename V::I dots[kSubs][kTokens];
  for (int t = 0; t < kTokens; ++t) {
    quants[t] = x.quants[t] + k;
    x_scales[t] = V::set1(x.scales[t][k / 32]);
    typename V::I start = V::zero_i();
    if constexpr (View::kBias != 0) start = group_sum<V, View::kChunks, -View::kBias>(x.sums[t] + k / kSumElements);
    for (int s = 0; s < kSubs; ++s) dots[s][t] = start;
  }
  V::template dot<View::kBits, View::kChunks>(view.chunks(), quants, dots);
  for (int s = 0; s < kSubs; ++s) {
    const typename V::F scale = view.scale(s);
    for (int t = 0; t < kTokens; ++t) acc[s][t] = V::fma(V::mul(scale, x_scales[t]), V::to_float(dots[s][t]), acc[s][t]);
  }
  if constexpr (View::kHasMin) {
    for (int t = 0; t < kTokens; ++t) {
      const typename V::F sum = V::mul(x_scales[t], V::to_float(group_sum<V, View::kChunks, 1>(x.sums[t] + k / kSumElements)));
      for (int s = 0; s < kSubs; ++s) acc[s][t] = V::fma(view.min(s), sum, acc[s][t]);
    }
  }
}

}  // namespace quench::generic
