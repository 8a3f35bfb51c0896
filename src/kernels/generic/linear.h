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
#include "kernels/generic/tile_pair.h"
#include "kernels/generic/unpacked.h"
#include "kernels/generic/weights_ahead.h"
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

template <class V, int kSubs, int kTokens>
[[gnu::always_inline]] inline void clear_accumulators(Accumulators<V, kSubs, kTokens>& acc) noexcept {
  for_registers<kSubs, kTokens>([&](auto s, auto t) __attribute__((always_inline)) { acc[s][t] = V::zero(); });
}
template <class V, int kSubs, int kTokens>
[[gnu::always_inline]] inline void load_accumulators(const float* out, std::size_t stride, Accumulators<V, kSubs, kTokens>& acc) noexcept {
  for_registers<kSubs, kTokens>([&](auto s, auto t) __attribute__((always_inline)) { acc[s][t] = V::loadu(out + t * stride + s * V::kN); });
}
template <class V, int kSubs, int kTokens>
[[gnu::always_inline]] inline void store_accumulators(float* out, std::size_t stride, const Accumulators<V, kSubs, kTokens>& acc) noexcept {
  for_registers<kSubs, kTokens>([&](auto s, auto t) __attribute__((always_inline)) { V::storeu(out + t * stride + s * V::kN, acc[s][t]); });
}

/// kFactor x the sum of a group's quants, in every lane.
template <class V, int kChunks, int kFactor>
[[gnu::always_inline]] inline typename V::I group_sum(const std::int16_t* sums) noexcept {
  if constexpr (kChunks == 4) return V::set1_i(kFactor * sums[0]);
  constexpr std::uint32_t kHalf = static_cast<std::uint16_t>(kFactor);
  return V::pair_dot(V::zero_i(), V::set1_i(static_cast<std::int32_t>(kHalf << 16 | kHalf)), sums);
}

/// acc = fma(w_scale * x_scale, float(dot), acc); the scales of x are `block` of each row.
template <class V, class View, int kSubs, int kTokens>
[[gnu::always_inline]] inline void add_scaled(const View& view, const TokenGroup<kTokens>& x, std::size_t block,
                                              const typename V::I (&dots)[kSubs][kTokens], Accumulators<V, kSubs, kTokens>& acc) noexcept {
  typename V::F scales[kSubs];
  repeat<kSubs>([&](auto s) __attribute__((always_inline)) { scales[s] = view.scale(s); });
  repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
    const typename V::F x_scale = V::set1(x.scales[t][block]);
    repeat<kSubs>(
        [&](auto s) __attribute__((always_inline)) { acc[s][t] = V::fma(V::mul(scales[s], x_scale), V::to_float(dots[s][t]), acc[s][t]); });
  });
}

/// One group of 32 (or 16) elements that starts at k: acc = fma(w_scale * x_scale, float(dot), acc), then the minimum.
template <class V, class View, int kSubs, int kTokens>
[[gnu::always_inline]] inline void add_group(const View& view, const TokenGroup<kTokens>& x, std::size_t k,
                                             Accumulators<V, kSubs, kTokens>& acc) noexcept {
  const std::int8_t* quants[kTokens];
  typename V::I dots[kSubs][kTokens];
  repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
    quants[t] = x.quants[t] + k;
    typename V::I start = V::zero_i();
    if constexpr (View::kBias != 0) start = group_sum<V, View::kChunks, -View::kBias>(x.sums[t] + k / kSumElements);
    repeat<kSubs>([&](auto s) __attribute__((always_inline)) { dots[s][t] = start; });
  });
  V::template dot<View::kBits, View::kChunks>(view.chunks(), quants, dots);
  add_scaled<V, View, kSubs, kTokens>(view, x, k / 32, dots, acc);
  if constexpr (View::kHasMin) {
    repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
      const typename V::F sum =
          V::mul(V::set1(x.scales[t][k / 32]), V::to_float(group_sum<V, View::kChunks, 1>(x.sums[t] + k / kSumElements)));
      repeat<kSubs>([&](auto s) __attribute__((always_inline)) { acc[s][t] = V::fma(view.min(s), sum, acc[s][t]); });
    });
  }
}

/// What the dots of a super-block's sub-blocks start at, where V lets them start: minus the bias times the sum of the activations, so that
/// the unsigned quants' bias leaves with the products.
template <class V, class View, int kTokens>
class BiasStarts {
 public:
  [[gnu::always_inline]] explicit BiasStarts(const std::int16_t* const (&sums)[kTokens]) noexcept {
    if constexpr (View::kBias != 0 && requires { V::kStartsDots; }) {
      repeat<kTokens>(
          [&](auto t) __attribute__((always_inline)) { V::template store_starts<View::kSubElements, View::kBias>(sums[t], starts_[t]); });
    }
  }
  [[gnu::always_inline]] typename V::I of(int t, std::size_t sub_block) const noexcept {
    if constexpr (View::kBias == 0) return V::zero_i();
    return V::set1_i(starts_[t][sub_block]);
  }

 private:
  alignas(64) std::int32_t starts_[kTokens][16];
};

/// One super-block that starts at k: S = sum of sub-scale x dot, exact; acc = fma(d * x_scale, float(S), acc), then the minimum.
template <class V, class View, int kSubs, int kTokens>
[[gnu::always_inline]] inline void add_super_block(const View& view, const TokenGroup<kTokens>& x, std::size_t k,
                                                   Accumulators<V, kSubs, kTokens>& acc) noexcept {
  constexpr bool kStartsDots = requires { V::kStartsDots; };
  constexpr bool kNeedsSums = (View::kBias != 0 && !kStartsDots) || View::kHasMin;
  constexpr std::size_t kPairs = 256 / View::kSubElements / 2;
  constexpr int kChunks = View::kSubElements / 4;
  const std::int16_t* sums[kTokens];
  std::int16_t sums_of_32[kTokens][8];
  repeat<kTokens>([&](auto t) __attribute__((always_inline)) { sums[t] = x.sums[t] + k / kSumElements; });
  [[maybe_unused]] const BiasStarts<V, View, kTokens> starts(sums);
  repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
    if constexpr (kNeedsSums && View::kSubElements == 32) {
      V::add_pairs(sums[t], sums_of_32[t]);
      sums[t] = sums_of_32[t];
    }
  });
  typename V::I dots[kSubs][kTokens];
  const auto dots_of = [&](const auto& chunks, std::size_t j, const typename V::Scale(&scale)[kSubs]) __attribute__((always_inline)) {
    const std::int8_t* quants[kTokens];
    repeat<kTokens>([&](auto t) __attribute__((always_inline)) { quants[t] = x.quants[t] + k + j * View::kSubElements; });
    if constexpr (kStartsDots) {
      typename V::I start[kTokens];
      repeat<kTokens>([&](auto t) __attribute__((always_inline)) { start[t] = starts.of(t, j); });
      V::template scaled_dot<View::kBits, kChunks>(chunks, quants, scale, dots, start);
    } else {
      V::template scaled_dot<View::kBits, kChunks>(chunks, quants, scale, dots);
    }
  };
  for_registers<kSubs, kTokens>([&](auto s, auto t) __attribute__((always_inline)) { dots[s][t] = V::zero_i(); });
  for (std::size_t p = 0; p < kPairs; ++p) {
    typename V::Scale even_scale[kSubs];
    typename V::Scale odd_scale[kSubs];
    repeat<kSubs>([&](auto s) __attribute__((always_inline)) {
      const typename V::I scales = view.scale_pair(p, s);
      even_scale[s] = V::even_scale(scales);
      odd_scale[s] = V::odd_scale(scales);
    });
    dots_of(view.even_chunks(p), 2 * p, even_scale);
    dots_of(view.odd_chunks(p), 2 * p + 1, odd_scale);
  }
  // After the products, whose registers these sums would take.
  if constexpr (View::kBias != 0 && !kStartsDots) {
    typename V::I bias[kSubs][kTokens];
    for_registers<kSubs, kTokens>([&](auto s, auto t) __attribute__((always_inline)) { bias[s][t] = V::zero_i(); });
    repeat<static_cast<int>(kPairs)>([&](auto p) __attribute__((always_inline)) {
      for_registers<kSubs, kTokens>([&](auto s, auto t) __attribute__((always_inline)) {
        bias[s][t] = V::pair_dot(bias[s][t], view.scale_pair(p, s), sums[t] + 2 * p);
      });
    });
    for_registers<kSubs, kTokens>([&](auto s, auto t) __attribute__((always_inline)) {
      dots[s][t] = V::sub_i(dots[s][t], V::mul_i(bias[s][t], V::set1_i(View::kBias)));
    });
  }
  add_scaled<V, View, kSubs, kTokens>(view, x, k / 256, dots, acc);
  if constexpr (View::kHasMin) {
    repeat<kSubs>([&](auto s) __attribute__((always_inline)) {
      typename V::I mins[kTokens];
      repeat<kTokens>([&](auto t) __attribute__((always_inline)) { mins[t] = V::zero_i(); });
      repeat<static_cast<int>(kPairs)>([&](auto p) __attribute__((always_inline)) {
        const typename V::I pair = view.min_pair(p, s);
        repeat<kTokens>([&](auto t) __attribute__((always_inline)) { mins[t] = V::pair_dot(mins[t], pair, sums[t] + 2 * p); });
      });
      const typename V::F negated_min = V::neg(view.min(s));
      repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
        acc[s][t] = V::fma(V::mul(negated_min, V::set1(x.scales[t][k / 256])), V::to_float(mins[t]), acc[s][t]);
      });
    });
  }
}

template <class V, class View, int kSubs, int kTokens>
[[gnu::always_inline]] inline void add_block(const View& view, const TokenGroup<kTokens>& x, std::size_t k,
                                             Accumulators<V, kSubs, kTokens>& acc) noexcept {
  if constexpr (View::kElements == 256) {
    add_super_block<V, View, kSubs, kTokens>(view, x, k, acc);
  } else {
    add_group<V, View, kSubs, kTokens>(view, x, k, acc);
  }
}

/// Block `block` of a job's tile, rows from sub-tile `sub` on; of its two tiles, where View is of both.
template <class View>
[[gnu::always_inline]] inline View block_of(const LinearTile& job, std::size_t block, std::size_t sub) noexcept {
  if constexpr (kIsTilePair<View>) {
    using One = typename View::One;
    return {One(job.tile, job.columns, block, 0), One(job.tile + job.tile_bytes, job.columns, block, 0)};
  } else {
    return View(job.tile, job.columns, block, sub);
  }
}

/// A whole packed tile: kSubs x V::kN rows from sub-tile `sub`, kTokens tokens.
template <class V, class View, int kSubs, int kTokens>
void packed_rows(const LinearTile& job, std::size_t token, std::size_t sub, WeightsAhead& ahead) noexcept {
  const TokenGroup<kTokens> x(*job.x, job.first_token + token);
  Accumulators<V, kSubs, kTokens> acc;
  clear_accumulators<V, kSubs, kTokens>(acc);
  constexpr std::size_t kElements = View::kElements;
  for (std::size_t block = 0; block < job.columns / kElements; ++block) {
    const auto view = block_of<View>(job, block, sub);
    add_block<V, View, kSubs, kTokens>(view, x, block * kElements, acc);
    ahead.step();
  }
  store_accumulators<V, kSubs, kTokens>(job.out + token * job.out_stride + sub * V::kN, job.out_stride, acc);
}

/// Blocks [first, first + count) of a packed tile, whose quants lie in the slab; sums of earlier blocks are in the output.
template <class V, class View, int kSubs, int kTokens>
[[gnu::noinline]] void slab_rows(const LinearTile& job, const SlabOf<V, View>& slab, std::size_t first, std::size_t count,
                                 std::size_t token, std::size_t sub) noexcept {
  const TokenGroup<kTokens> x(*job.x, job.first_token + token);
  float* out = job.out + token * job.out_stride + sub * V::kN;
  Accumulators<V, kSubs, kTokens> acc;
  if (first == 0) {
    clear_accumulators<V, kSubs, kTokens>(acc);
  } else {
    load_accumulators<V, kSubs, kTokens>(out, job.out_stride, acc);
  }
  constexpr std::size_t kElements = View::kElements;
  for (std::size_t b = 0; b < count; ++b) {
    const Unpacked<V, View> view(block_of<View>(job, first + b, sub), slab.at(b * kElements, sub));
    add_block<V, Unpacked<V, View>, kSubs, kTokens>(view, x, (first + b) * kElements, acc);
  }
  store_accumulators<V, kSubs, kTokens>(out, job.out_stride, acc);
}

template <class V>
struct Linear {
  static constexpr std::size_t kSubTiles = tiles::kRows / V::kN;

  /// Formats with a layout of their own.
  template <template <class> class View>
  static void packed(const LinearTile& job) noexcept {
    std::size_t done = 0;
    if constexpr (kPairs) {
      if (job.n_tiles > 1 && job.n_tokens >= 2 * V::kPairTokens) {
        done = job.n_tokens / V::kPairTokens * V::kPairTokens;
        packed_pairs<View<V>>(job, done);
      }
    }
    for (std::size_t i = 0; i < job.n_tiles; ++i) packed_tile<View<V>>(tile_of(job, i), done);
  }

  /// Every other format. For many tokens a block of the 16 rows is decoded once for all of them; for a few, each row's sum S is formed
  /// from its quants as they come out of the grid, without laying them out.
  template <template <class> class RowType, Format kFormat>
  static void raw(const LinearTile& job) noexcept {
    const auto block_bytes = static_cast<std::size_t>(format_info(kFormat).block_bytes);
    if constexpr (kPairs) {
      if (job.n_tiles > 1 && job.n_tokens >= kFewTokens) return raw_pairs<RowType<V>>(job, block_bytes);
    }
    for (std::size_t i = 0; i < job.n_tiles; ++i) {
      const LinearTile tile = tile_of(job, i);
      if (tile.n_tokens < kFewTokens) {
        WeightsAhead ahead = weights_ahead(tile, tile.n_tokens * (tile.columns / 256));
        for (std::size_t t = 0; t < tile.n_tokens; ++t) raw_token<RowType<V>>(tile, block_bytes, t, ahead);
      } else {
        raw_tokens<RowType<V>>(tile, block_bytes);
      }
    }
  }

  static void fill(KernelTable& table) noexcept {
    const auto slot = [&](Format format) -> LinearKernel& { return table.linear[static_cast<std::size_t>(format)]; };
    table.max_tiles.fill(kPairs ? 2 : 1);
    table.max_tiles[static_cast<std::size_t>(Format::kBF16)] = 1;
    slot(Format::kF32) = FloatLinear<V>::f32;
    slot(Format::kF16) = FloatLinear<V>::f16;
    slot(Format::kBF16) = FloatLinear<V>::bf16;
    slot(Format::kQ8_0) = packed<Q8_0View>;
    slot(Format::kQ4_0) = packed<Q4_0View>;
    slot(Format::kQ4_1) = packed<Q4_1View>;
    slot(Format::kQ5_0) = packed<Q5_0View>;
    slot(Format::kQ5_1) = packed<Q5_1View>;
    slot(Format::kQ1_0) = packed<Q1_0View>;
    slot(Format::kQ2_0) = packed<Q2_0View>;
    slot(Format::kIq4_NL) = packed<Iq4_NLView>;
    slot(Format::kMxfp4) = packed<Mxfp4View>;
    slot(Format::kNvfp4) = packed<Nvfp4View>;
    slot(Format::kQ2_K) = packed<Q2_KView>;
    slot(Format::kQ3_K) = packed<Q3_KView>;
    slot(Format::kQ4_K) = packed<Q4_KView>;
    slot(Format::kQ5_K) = packed<Q5_KView>;
    slot(Format::kQ6_K) = packed<Q6_KView>;
    slot(Format::kIq4_XS) = packed<Iq4_XSView>;
    slot(Format::kTq2_0) = packed<Tq2_0View>;
    slot(Format::kIq1_S) = raw<Iq1_SRow, Format::kIq1_S>;
    slot(Format::kIq1_M) = raw<Iq1_MRow, Format::kIq1_M>;
    slot(Format::kIq2_XXS) = raw<Iq2_XXSRow, Format::kIq2_XXS>;
    slot(Format::kIq2_XS) = raw<Iq2_XSRow, Format::kIq2_XS>;
    slot(Format::kIq2_S) = raw<Iq2_SRow, Format::kIq2_S>;
    slot(Format::kIq3_XXS) = raw<Iq3_XXSRow, Format::kIq3_XXS>;
    slot(Format::kIq3_S) = raw<Iq3_SRow, Format::kIq3_S>;
    slot(Format::kTq1_0) = raw<Tq1_0Row, Format::kTq1_0>;
  }

 private:
  // Laying a block out costs about as much as one token's product.
  static constexpr std::size_t kFewTokens = 4;

  /// Where a register holds all rows of a tile, each product would load its own activations: two tiles share them.
  static constexpr bool kPairs = kSubTiles == 1;

  static LinearTile tile_of(const LinearTile& job, std::size_t i) noexcept {
    LinearTile tile = job;
    tile.tile += i * job.tile_bytes;
    tile.out += i * tiles::kRows;
    tile.n_tiles = 1;
    return tile;
  }

  /// Tokens [done, n_tokens) of one tile.
  template <class View>
  static void packed_tile(const LinearTile& job, std::size_t done) noexcept {
    if constexpr (kUnpacksFirst<View>) {
      // Unpacking costs about what one group of tokens saves.
      if (job.n_tokens - done >= 2 * V::kTokens) {
        done = job.n_tokens / V::kTokens * V::kTokens;
        slabs<View, V::slab_sub_tiles(View::kBits), V::kTokens>(job, done);
      }
    }
    WeightsAhead ahead = done > 0 ? WeightsAhead(job.tile, 0, 1)
                                  : weights_ahead(job, token_groups_of<V::kTokens>(job.n_tokens) * (job.columns / View::kElements));
    for_token_groups<V::kTokens>(
        job.n_tokens,
        [&](auto tokens, std::size_t token) __attribute__((always_inline)) {
          constexpr int kSubs = V::sub_tiles(tokens);
          for (std::size_t sub = 0; sub < kSubTiles; sub += kSubs) packed_rows<V, View, kSubs, tokens>(job, token, sub, ahead);
        },
        done);
  }

  /// The first `tokens` of two tiles, a multiple of V::kPairTokens.
  template <class View>
  static void packed_pairs(const LinearTile& job, std::size_t tokens) noexcept {
    if constexpr (kInstructionsToUnpack<View> > 0) {
      slabs<TilePair<View>, 2, V::kPairTokens>(job, tokens);
    } else {
      WeightsAhead ahead = weights_ahead(job, tokens / V::kPairTokens * (job.columns / View::kElements));
      for (std::size_t token = 0; token < tokens; token += V::kPairTokens) {
        packed_rows<V, TilePair<View>, 2, V::kPairTokens>(job, token, 0, ahead);
      }
    }
  }

  /// The first `tokens` of a job, a multiple of kTokens.
  template <class View, int kSubs, int kTokens>
  static void slabs(const LinearTile& job, std::size_t tokens) noexcept {
    constexpr std::size_t kBlocks = kSlabElements / View::kElements;
    const std::size_t blocks = job.columns / View::kElements;
    SlabOf<V, View> slab;
    WeightsAhead ahead = weights_ahead(job, (blocks + kBlocks - 1) / kBlocks * (tokens / kTokens));
    for (std::size_t first = 0; first < blocks; first += kBlocks) {
      const std::size_t count = blocks - first < kBlocks ? blocks - first : kBlocks;
      if constexpr (kIsTilePair<View>) {
        for (std::size_t i = 0; i < 2; ++i) slab.template unpack<typename View::One>(tile_of(job, i), i, first, count);
      } else {
        slab.template unpack<View>(job, 0, first, count);
      }
      for (std::size_t token = 0; token < tokens; token += kTokens) {
        ahead.step();
        for (std::size_t sub = 0; sub < kSubTiles; sub += kSubs) slab_rows<V, View, kSubs, kTokens>(job, slab, first, count, token, sub);
      }
    }
  }

  template <class RowType>
  [[gnu::noinline]] static void raw_token(const LinearTile& job, std::size_t block_bytes, std::size_t token, WeightsAhead& ahead) noexcept {
    const TokenGroup<1> x(*job.x, job.first_token + token);
    float* out = job.out + token * job.out_stride;
    typename V::F acc[kSubTiles];
    for (auto& a : acc) a = V::zero();
    for (std::size_t block = 0; block < job.columns / 256; ++block) {
      alignas(64) F16 d[tiles::kRows];
      alignas(64) std::int32_t sums[tiles::kRows];
      ahead.step();
      for (std::size_t r = 0; r < tiles::kRows; ++r) {
        const std::byte* file = RawTile<V, RowType>::row(job.tile, block_bytes, block, r);
        const RowType row(file);
        d[r] = row.d();
        typename V::RowSums sum = V::no_sums();
        const std::int8_t* quants = x.quants[0] + 256 * block;
        repeat<8>([&](auto i) __attribute__((always_inline)) { sum = add_dot_of_32<V>(sum, row, i, quants + 32 * i); });
        sums[r] = V::sum_of(sum);
      }
      const typename V::F x_scale = V::set1(x.scales[0][block]);
      for (std::size_t s = 0; s < kSubTiles; ++s) {
        const typename V::F scale = V::mul(V::load_f16(d + s * V::kN), V::set1(RowType::kFactor));
        acc[s] = V::fma(V::mul(scale, x_scale), V::to_float(V::loadu_i(sums + s * V::kN)), acc[s]);
      }
    }
    for (std::size_t s = 0; s < kSubTiles; ++s) V::storeu(out + s * V::kN, acc[s]);
  }

  template <class RowType>
  static void raw_tokens(const LinearTile& job, std::size_t block_bytes) noexcept {
    RawTile<V, RowType> tile;
    WeightsAhead ahead = weights_ahead(job, job.columns / 256);
    for (std::size_t block = 0; block < job.columns / 256; ++block) {
      ahead.step();
      tile.decode(job.tile, block_bytes, block);
      for_token_groups<V::kTokens>(job.n_tokens, [&](auto tokens, std::size_t token) __attribute__((always_inline)) {
        constexpr int kSubs = V::sub_tiles(tokens);
        for (std::size_t sub = 0; sub < kSubTiles; sub += kSubs) {
          raw_block_rows<kSubs, tokens>(job, RawSuper<V, RowType>(tile, sub), token, sub, block);
        }
      });
    }
  }

  template <class RowType>
  static void raw_pairs(const LinearTile& job, std::size_t block_bytes) noexcept {
    const std::size_t in_pairs = job.n_tokens / V::kPairTokens * V::kPairTokens;
    RawTile<V, RowType> decoded[2];
    WeightsAhead ahead = weights_ahead(job, job.columns / 256);
    for (std::size_t block = 0; block < job.columns / 256; ++block) {
      ahead.step();
      for (std::size_t i = 0; i < 2; ++i) decoded[i].decode(job.tile + i * job.tile_bytes, block_bytes, block);
      const TilePair<RawSuper<V, RowType>> view(RawSuper<V, RowType>(decoded[0], 0), RawSuper<V, RowType>(decoded[1], 0));
      for (std::size_t token = 0; token < in_pairs; token += V::kPairTokens) raw_block_rows<2, V::kPairTokens>(job, view, token, 0, block);
      for_token_groups<4>(
          job.n_tokens,
          [&](auto tokens, std::size_t token) __attribute__((always_inline)) {
            for (std::size_t i = 0; i < 2; ++i)
              raw_block_rows<1, tokens>(tile_of(job, i), RawSuper<V, RowType>(decoded[i], 0), token, 0, block);
          },
          in_pairs);
    }
  }

  template <int kSubs, int kTokens, class View>
  static void raw_block_rows(const LinearTile& job, const View& view, std::size_t token, std::size_t sub, std::size_t block) noexcept {
    const TokenGroup<kTokens> x(*job.x, job.first_token + token);
    float* out = job.out + token * job.out_stride + sub * V::kN;
    Accumulators<V, kSubs, kTokens> acc;
    if (block == 0) {
      clear_accumulators<V, kSubs, kTokens>(acc);
    } else {
      load_accumulators<V, kSubs, kTokens>(out, job.out_stride, acc);
    }
    add_super_block<V, View, kSubs, kTokens>(view, x, block * 256, acc);
    store_accumulators<V, kSubs, kTokens>(out, job.out_stride, acc);
  }
};

}  // namespace quench::generic
