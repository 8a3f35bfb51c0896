#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/activations.h"
#include "kernels/generic/blocks.h"
#include "kernels/generic/float_linear.h"
#include "kernels/generic/raw_blocks.h"
#include "kernels/generic/repeat.h"
#include "kernels/table.h"

/// The linear kernels for any lanes V: the order of every rounding is the one of spec/linear.cpp, the integer sums between them are
/// exact and free to be taken in any order.
namespace quench::generic {

/// The rows of activations that a group of tokens multiplies with, at their starts.
template <int kTokens>
struct TokenGroup {
  const std::int8_t* quants[kTokens];
  const float* scales[kTokens];
  const std::int16_t* sums[kTokens];

  TokenGroup(const Activations& x, std::size_t first) noexcept {
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

template <class V, int kSubs, int kTokens>
[[gnu::always_inline]] inline void load_accumulators(const float* out, std::size_t stride, Accumulators<V, kSubs, kTokens>& acc) noexcept {
  for (int s = 0; s < kSubs; ++s) {
    for (int t = 0; t < kTokens; ++t)
      acc[s][t] = V::loadu(out + static_cast<std::size_t>(t) * stride + static_cast<std::size_t>(s) * V::kN);
  }
}
template <class V, int kSubs, int kTokens>
[[gnu::always_inline]] inline void store_accumulators(float* out, std::size_t stride, const Accumulators<V, kSubs, kTokens>& acc) noexcept {
  for (int s = 0; s < kSubs; ++s) {
    for (int t = 0; t < kTokens; ++t)
      V::storeu(out + static_cast<std::size_t>(t) * stride + static_cast<std::size_t>(s) * V::kN, acc[s][t]);
  }
}

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

/// One super-block that starts at k: S = sum of sub-scale x dot, exact; acc = fma(d * x_scale, float(S), acc), then the minimum.
template <class V, class View, int kSubs, int kTokens>
[[gnu::always_inline]] inline void add_super_block(const View& view, const TokenGroup<kTokens>& x, std::size_t k,
                                                   Accumulators<V, kSubs, kTokens>& acc) noexcept {
  constexpr bool kNeedsSums = View::kBias != 0 || View::kHasMin;
  constexpr std::size_t kPairs = 256 / View::kSubElements / 2;
  constexpr int kChunks = View::kSubElements / 4;
  const std::int16_t* sums[kTokens];
  std::int16_t sums_of_32[kTokens][8];
  typename V::I dots[kSubs][kTokens];
  typename V::I bias[kSubs][kTokens];
  typename V::I mins[kSubs][kTokens];
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = x.sums[t] + k / kSumElements;
    if constexpr (kNeedsSums && View::kSubElements == 32) {
      V::add_pairs(sums[t], sums_of_32[t]);
      sums[t] = sums_of_32[t];
    }
    for (int s = 0; s < kSubs; ++s) dots[s][t] = bias[s][t] = mins[s][t] = V::zero_i();
  }
  for (std::size_t p = 0; p < kPairs; ++p) {
    const std::int8_t* even[kTokens];
    const std::int8_t* odd[kTokens];
    typename V::Scale even_scale[kSubs];
    typename V::Scale odd_scale[kSubs];
    for (int t = 0; t < kTokens; ++t) {
      even[t] = x.quants[t] + k + 2 * p * View::kSubElements;
      odd[t] = even[t] + View::kSubElements;
    }
    for (int s = 0; s < kSubs; ++s) {
      const typename V::I scales = view.scale_pair(p, s);
      even_scale[s] = V::even_scale(scales);
      odd_scale[s] = V::odd_scale(scales);
      if constexpr (View::kBias != 0) {
        for (int t = 0; t < kTokens; ++t) bias[s][t] = V::pair_dot(bias[s][t], scales, sums[t] + 2 * p);
      }
      if constexpr (View::kHasMin) {
        const typename V::I pair = view.min_pair(p, s);
        for (int t = 0; t < kTokens; ++t) mins[s][t] = V::pair_dot(mins[s][t], pair, sums[t] + 2 * p);
      }
    }
    V::template scaled_dot<View::kBits, kChunks>(view.chunks(2 * p), even, even_scale, dots);
    V::template scaled_dot<View::kBits, kChunks>(view.chunks(2 * p + 1), odd, odd_scale, dots);
  }
  for (int s = 0; s < kSubs; ++s) {
    const typename V::F scale = view.scale(s);
    for (int t = 0; t < kTokens; ++t) {
      typename V::I sum = dots[s][t];
      if constexpr (View::kBias != 0) sum = V::sub_i(sum, V::mul_i(bias[s][t], V::set1_i(View::kBias)));
      const typename V::F x_scale = V::set1(x.scales[t][k / 256]);
      acc[s][t] = V::fma(V::mul(scale, x_scale), V::to_float(sum), acc[s][t]);
      if constexpr (View::kHasMin) acc[s][t] = V::fma(V::neg(V::mul(view.min(s), x_scale)), V::to_float(mins[s][t]), acc[s][t]);
    }
  }
}

// A one-token product streams the weights from memory: 2 KiB ahead covers about 100 ns at 20 GB/s. The end of a tile runs into the next
// one's scales, which is where the walk continues.
inline constexpr std::size_t kPrefetchBytes = 2048;

template <class View>
[[gnu::always_inline]] inline void prefetch_block(const View& view) noexcept {
  for (std::size_t i = 0; i < View::Tile::kQuantBytes; i += 64) __builtin_prefetch(view.quants + i + kPrefetchBytes);
}

/// A whole packed tile: kSubs x V::kN rows from sub-tile `sub`, kTokens tokens.
template <class V, class View, int kSubs, int kTokens>
void packed_rows(const LinearTile& job, std::size_t token, std::size_t sub) noexcept {
  const TokenGroup<kTokens> x(*job.x, job.first_token + token);
  Accumulators<V, kSubs, kTokens> acc;
  for (int s = 0; s < kSubs; ++s) {
    for (int t = 0; t < kTokens; ++t) acc[s][t] = V::zero();
  }
  constexpr std::size_t kElements = View::Tile::kBlockElements;
  for (std::size_t block = 0; block < job.columns / kElements; ++block) {
    const View view(job.tile, job.columns, block, sub);
    if constexpr (kTokens == 1) prefetch_block(view);
    if constexpr (kElements == 256) {
      add_super_block<V, View, kSubs, kTokens>(view, x, block * kElements, acc);
    } else {
      add_group<V, View, kSubs, kTokens>(view, x, block * kElements, acc);
    }
  }
  store_accumulators<V, kSubs, kTokens>(job.out + token * job.out_stride + sub * V::kN, job.out_stride, acc);
}

template <class V>
struct Linear {
  static constexpr std::size_t kSubTiles = tiles::kRows / V::kN;

  /// Formats with a layout of their own.
  template <template <class> class View>
  static void packed(const LinearTile& job) noexcept {
    for_token_groups<V::kTokens>(job.n_tokens, [&](auto tokens, std::size_t token) __attribute__((always_inline)) {
      constexpr int kSubs = V::sub_tiles(tokens);
      for (std::size_t sub = 0; sub < kSubTiles; sub += kSubs) packed_rows<V, View<V>, kSubs, tokens>(job, token, sub);
    });
  }

  /// Every other integer format: each file block of the 16 rows is decoded once for all tokens of the call.
  template <class View>
  static void raw_with(const LinearTile& job, const FormatInfo& info) noexcept {
    const auto elements = static_cast<std::size_t>(info.block_elements);
    for (std::size_t t = 0; t < job.n_tokens; ++t) {
      for (std::size_t r = 0; r < tiles::kRows; ++r) job.out[t * job.out_stride + r] = 0.0f;
    }
    RawTile<V> raw;
    for (std::size_t block = 0; block < job.columns / elements; ++block) {
      raw.decode(job.tile, info, block);
      for_token_groups<V::kTokens>(job.n_tokens, [&](auto tokens, std::size_t token) __attribute__((always_inline)) {
        constexpr int kSubs = V::sub_tiles(tokens);
        for (std::size_t sub = 0; sub < kSubTiles; sub += kSubs) {
          raw_block_rows<View, kSubs, tokens>(job, raw, token, sub, block * elements, elements);
        }
      });
    }
  }

  template <Format kFormat>
  static void raw(const LinearTile& job) noexcept {
    const FormatInfo& info = format_info(kFormat);
    const bool has_min = info.shape.has_min;
    if (info.arithmetic == Arithmetic::kSuperBlock) {
      if (info.shape.sub_elements == 16)
        return has_min ? raw_with<RawSuper<V, 16, true>>(job, info) : raw_with<RawSuper<V, 16, false>>(job, info);
      return has_min ? raw_with<RawSuper<V, 32, true>>(job, info) : raw_with<RawSuper<V, 32, false>>(job, info);
    }
    if (info.shape.group_elements == 16) return raw_with<RawGroup<V, 16, false>>(job, info);
    return has_min ? raw_with<RawGroup<V, 32, true>>(job, info) : raw_with<RawGroup<V, 32, false>>(job, info);
  }

  template <class View, int kSubs, int kTokens>
  static void raw_block_rows(const LinearTile& job, const RawTile<V>& raw_tile, std::size_t token, std::size_t sub, std::size_t k,
                             std::size_t elements) noexcept {
    const TokenGroup<kTokens> x(*job.x, job.first_token + token);
    float* out = job.out + token * job.out_stride + sub * V::kN;
    Accumulators<V, kSubs, kTokens> acc;
    load_accumulators<V, kSubs, kTokens>(out, job.out_stride, acc);
    if constexpr (View::kElements == 256) {
      add_super_block<V, View, kSubs, kTokens>(View(raw_tile, 0, sub), x, k, acc);
    } else {
      for (std::size_t g = 0; g * View::kElements < elements; ++g) {
        add_group<V, View, kSubs, kTokens>(View(raw_tile, g, sub), x, k + g * View::kElements, acc);
      }
    }
    store_accumulators<V, kSubs, kTokens>(out, job.out_stride, acc);
  }

  template <Format... kFormats>
  static void fill_raw(std::array<LinearKernel, kFormatSlots>& linear) noexcept {
    ((linear[static_cast<std::size_t>(kFormats)] = raw<kFormats>), ...);
  }

  static void fill(std::array<LinearKernel, kFormatSlots>& linear) noexcept {
    const auto slot = [&](Format format) -> LinearKernel& { return linear[static_cast<std::size_t>(format)]; };
    slot(Format::kF32) = FloatLinear<V>::f32;
    slot(Format::kF16) = FloatLinear<V>::f16;
    slot(Format::kBF16) = FloatLinear<V>::bf16;
    slot(Format::kQ8_0) = packed<Q8_0View>;
    slot(Format::kQ4_0) = packed<Q4_0View>;
    slot(Format::kQ4_1) = packed<Q4_1View>;
    slot(Format::kQ5_0) = packed<Q5_0View>;
    slot(Format::kQ4_K) = packed<Q4_KView>;
    slot(Format::kQ6_K) = packed<Q6_KView>;
    fill_raw<Format::kQ5_1, Format::kQ1_0, Format::kQ2_0, Format::kIq4_NL, Format::kMxfp4, Format::kNvfp4>(linear);
    fill_raw<Format::kQ2_K, Format::kQ3_K, Format::kQ5_K, Format::kTq1_0, Format::kTq2_0>(linear);
    fill_raw<Format::kIq1_S, Format::kIq1_M, Format::kIq2_XXS, Format::kIq2_XS, Format::kIq2_S, Format::kIq3_XXS, Format::kIq3_S,
             Format::kIq4_XS>(linear);
  }
};

}  // namespace quench::generic
