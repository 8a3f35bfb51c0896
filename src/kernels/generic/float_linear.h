#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/activations.h"
#include "kernels/generic/repeat.h"
#include "kernels/generic/weights_ahead.h"
#include "kernels/packing/tiles.h"
#include "kernels/table.h"

namespace quench::generic {

/// f32, f16 and bf16 weights for any lanes V.
template <class V>
struct FloatLinear {
  static constexpr int kSubs = static_cast<int>(tiles::kRows / V::kN) < 2 ? 1 : 2;

  /// Tiles that f32 and f16 take at once. Where a register holds a whole tile's rows, one tile would load an activation for each fma; two
  /// share them.
  static constexpr int kMaxTiles = kSubs == 1 ? 2 : 1;

  static void f32(const LinearTile& job) noexcept { groups<&FloatLinear::load_f32, sizeof(float)>(job); }
  static void f16(const LinearTile& job) noexcept {
    if (job.n_tokens < kSlabTokens) return groups<&FloatLinear::load_f16, sizeof(F16)>(job);
    if (job.n_tiles == 1) return f16_slabs<1>(job);
    f16_slabs<kMaxTiles>(job);
  }
  static void bf16(const LinearTile& job) noexcept {
    if (job.n_tokens >= kSlabTokens) return bf16_slabs(job);
    // Two chains for each accumulator: 4 tokens x 1 register of rows, or 1 token x 2, keep at least 4 running.
    WeightsAhead ahead = weights_ahead(job, token_groups_of<4>(job.n_tokens) * steps(job.columns, 2 * kBf16GroupPairs));
    for_token_groups<4>(job.n_tokens, [&](auto tokens, std::size_t token) __attribute__((always_inline)) {
      constexpr int kBf16Subs = tokens == 1 ? kSubs : 1;
      for (std::size_t sub = 0; sub < tiles::kRows / V::kN; sub += kBf16Subs) bf16_rows<kBf16Subs, tokens>(job, token, sub, ahead);
    });
  }

 private:
  using F = typename V::F;
  using I = typename V::I;

  static F load_f32(const std::byte* p) noexcept { return V::loadu(reinterpret_cast<const float*>(p)); }
  static F load_f16(const std::byte* p) noexcept { return V::load_f16(reinterpret_cast<const F16*>(p)); }

  // Many tokens: weights are widened to f32 once for all of them, 256 k of 16 rows at a time: 16 KiB, which stay in L1 (32 KiB) beside a
  // group's activations. Below two groups of tokens the widening would cost what it saves.
  static constexpr std::size_t kSlab = 256;
  static constexpr std::size_t kSlabTokens = 2 * static_cast<std::size_t>(V::kFloatTokens);
  using Slab = float[kSlab][tiles::kRows];

  /// A step of WeightsAhead for this many k.
  static constexpr std::size_t kStep = 32;
  static std::size_t steps(std::size_t columns, std::size_t of) noexcept { return (columns + of - 1) / of; }

  template <F (*kLoad)(const std::byte*) noexcept, std::size_t kElementBytes>
  static void groups(const LinearTile& job) noexcept {
    const std::size_t passes = token_groups_of<V::kFloatTokens>(job.n_tokens) * steps(job.columns, kStep);
    if (job.n_tiles == 1 || job.n_tokens == 1) {
      WeightsAhead ahead = weights_ahead(job, passes * job.n_tiles);
      for (std::size_t i = 0; i < job.n_tiles; ++i) {
        const Rows weights{job.tile + i * job.tile_bytes, 0, job.columns, V::kN * kElementBytes};
        token_groups<kLoad, kElementBytes, kSubs>(job, weights, i * tiles::kRows, ahead);
      }
    } else {
      WeightsAhead ahead = weights_ahead(job, passes);
      token_groups<kLoad, kElementBytes, kMaxTiles>(job, {job.tile, 0, job.columns, job.tile_bytes}, 0, ahead);
    }
  }

  template <int kTiles>
  static void f16_slabs(const LinearTile& job) noexcept {
    alignas(64) Slab slabs[kTiles];
    WeightsAhead ahead = weights_ahead(job, token_groups_of<V::kFloatTokens>(job.n_tokens) * steps(job.columns, kStep));
    for (std::size_t first = 0; first < job.columns; first += kSlab) {
      const std::size_t count = job.columns - first < kSlab ? job.columns - first : kSlab;
      for (std::size_t tile = 0; tile < kTiles; ++tile) {
        const auto* halves = reinterpret_cast<const F16*>(job.tile + tile * job.tile_bytes) + first * tiles::kRows;
        for (std::size_t i = 0; i < count * tiles::kRows; i += V::kN) V::store(&slabs[tile][0][0] + i, V::load_f16(halves + i));
      }
      constexpr bool kPair = kTiles > 1;
      const Rows weights{reinterpret_cast<const std::byte*>(slabs), first, count, kPair ? sizeof(Slab) : V::kN * sizeof(float)};
      token_groups<&FloatLinear::load_f32, sizeof(float), kPair ? kTiles : kSubs>(job, weights, 0, ahead);
    }
  }

  /// Weights of k in [first, first + count), as f32 or f16; one register of rows lies sub_bytes behind the other.
  struct Rows {
    const std::byte* weights;
    std::size_t first;
    std::size_t count;
    std::size_t sub_bytes;
  };

  /// Output rows from `row` on: kRegisters of them at a time.
  template <F (*kLoad)(const std::byte*) noexcept, std::size_t kElementBytes, int kRegisters>
  static void token_groups(const LinearTile& job, const Rows& weights, std::size_t row, WeightsAhead& ahead) noexcept {
    constexpr std::size_t kAtOnce = kRegisters * V::kN;
    for_token_groups<V::kFloatTokens>(job.n_tokens, [&](auto tokens, std::size_t token) __attribute__((always_inline)) {
      Rows part = weights;
      for (std::size_t r = 0; r < std::max(tiles::kRows, kAtOnce); r += kAtOnce, part.weights += kRegisters * weights.sub_bytes) {
        rows<kLoad, kElementBytes, kRegisters, tokens>(job, part, token, row + r, ahead);
      }
    });
  }

  /// acc = fma(w, x, acc); sums of earlier k are in the output.
  template <F (*kLoad)(const std::byte*) noexcept, std::size_t kElementBytes, int kRegisters, int kTokens>
  static void rows(const LinearTile& job, const Rows& part, std::size_t token, std::size_t row, WeightsAhead& ahead) noexcept {
    const float* x[kTokens];
    float* out[kTokens];
    F acc[kRegisters][kTokens];
    for (int t = 0; t < kTokens; ++t) {
      x[t] = job.x->f32_row(job.first_token + token + static_cast<std::size_t>(t)) + part.first;
      out[t] = job.out + (token + static_cast<std::size_t>(t)) * job.out_stride + row;
      for (int s = 0; s < kRegisters; ++s) {
        const std::size_t offset = static_cast<std::size_t>(s) * V::kN;
        acc[s][t] = part.first == 0 ? V::zero() : V::loadu(out[t] + offset);
        if constexpr (kTokens > 1) __builtin_prefetch(out[t] + kTokens * job.out_stride + offset, 1);  // the next group's
      }
    }
    const std::byte* weights = part.weights;
    for (std::size_t first = 0; first < part.count; first += kStep) {
      const std::size_t last = first + kStep < part.count ? first + kStep : part.count;
      ahead.step();
      for (std::size_t k = first; k < last; ++k, weights += tiles::kRows * kElementBytes) {
        F w[kRegisters];
        for (int s = 0; s < kRegisters; ++s) w[s] = kLoad(weights + static_cast<std::size_t>(s) * part.sub_bytes);
        for (int t = 0; t < kTokens; ++t) {
          const F x_k = V::set1(x[t][k]);
          for (int s = 0; s < kRegisters; ++s) acc[s][t] = V::fma(w[s], x_k, acc[s][t]);
        }
      }
    }
    for (int s = 0; s < kRegisters; ++s) {
      for (int t = 0; t < kTokens; ++t) V::storeu(out[t] + static_cast<std::size_t>(s) * V::kN, acc[s][t]);
    }
  }

  // The sums of bf16 are chains over 32 k.
  static constexpr std::size_t kBf16GroupPairs = 16;

  static F even_bf16(I pairs) noexcept { return V::from_bits(V::template shift_left<16>(pairs)); }
  static F odd_bf16(I pairs) noexcept { return V::from_bits(V::and_i(pairs, V::set1_i(static_cast<std::int32_t>(0xFFFF0000u)))); }
  static F flush(F w) noexcept { return V::select(V::lt(V::abs(w), V::set1(0x1p-56f)), V::zero(), w); }

  struct Halves {
    F even;
    F odd;
  };
  [[gnu::always_inline]] static Halves flushed(I pairs) noexcept {
    if constexpr (requires { V::flush_bf16(pairs); }) {
      const I kept = V::flush_bf16(pairs);
      return {even_bf16(kept), odd_bf16(kept)};
    } else {
      return {flush(even_bf16(pairs)), flush(odd_bf16(pairs))};
    }
  }

  static void bf16_slabs(const LinearTile& job) noexcept {
    alignas(64) Slab slab;
    WeightsAhead ahead = weights_ahead(job, token_groups_of<V::kFloatTokens>(job.n_tokens) * steps(job.columns, kSlab));
    for (std::size_t first = 0; first < job.columns; first += kSlab) {
      const std::size_t pairs = ((job.columns - first < kSlab ? job.columns - first : kSlab) + 1) / 2;
      const std::byte* weights = job.tile + first * tiles::kRows * sizeof(BF16);
      for (std::size_t p = 0; p < pairs; ++p) {
        for (std::size_t r = 0; r < tiles::kRows; r += V::kN) {
          const I w = V::loadu_i(reinterpret_cast<const std::int32_t*>(weights + (p * tiles::kRows + r) * 4));
          V::store(slab[2 * p] + r, flush(even_bf16(w)));
          V::store(slab[2 * p + 1] + r, flush(odd_bf16(w)));
        }
      }
      for_token_groups<V::kFloatTokens>(job.n_tokens, [&](auto tokens, std::size_t token) __attribute__((always_inline)) {
        ahead.step();
        WidePairs x[tokens];
        for (int t = 0; t < tokens; ++t) {
          x[t].widen(job.x->bf16_row(job.first_token + token + static_cast<std::size_t>(t)) + first, pairs);
        }
        for (std::size_t sub = 0; sub < tiles::kRows / V::kN; sub += kSubs) bf16_slab_rows<tokens>(job, slab, x, first, pairs, token, sub);
      });
    }
  }

  /// A slab of one token's activations.
  struct WidePairs {
    alignas(64) float even[kSlab / 2];
    alignas(64) float odd[kSlab / 2];

    /// A row is followed by zeros up to a multiple of 16 pairs.
    void widen(const BF16* x, std::size_t pairs) noexcept {
      for (std::size_t p = 0; p < pairs; p += V::kN) {
        const I words = V::loadu_i(reinterpret_cast<const std::int32_t*>(x + 2 * p));
        V::store(even + p, even_bf16(words));
        V::store(odd + p, odd_bf16(words));
      }
    }
  };

  /// The two chains one after the other: each alone fills the registers as the f32 kernel does.
  template <int kTokens>
  static void bf16_slab_rows(const LinearTile& job, const Slab& slab, const WidePairs (&x)[kTokens], std::size_t first, std::size_t pairs,
                             std::size_t token, std::size_t sub) noexcept {
    for (std::size_t begin = 0; begin < pairs; begin += kBf16GroupPairs) {
      const std::size_t count = begin + kBf16GroupPairs < pairs ? kBf16GroupPairs : pairs - begin;
      F even[kSubs][kTokens];
      F odd[kSubs][kTokens];
      bf16_chain<&WidePairs::even, kTokens>(slab[2 * begin] + sub * V::kN, x, begin, count, even);
      bf16_chain<&WidePairs::odd, kTokens>(slab[2 * begin + 1] + sub * V::kN, x, begin, count, odd);
      for (int t = 0; t < kTokens; ++t) {
        float* out = job.out + (token + static_cast<std::size_t>(t)) * job.out_stride + sub * V::kN;
        for (int s = 0; s < kSubs; ++s, out += V::kN) {
          const F acc = first + begin == 0 ? V::zero() : V::loadu(out);
          V::storeu(out, V::add(acc, V::add(even[s][t], odd[s][t])));
        }
      }
    }
  }

  /// sums = the chain over one half of pairs begin, begin + 1, ..., from zero; `weights` are those of the first.
  template <float (WidePairs::*kHalf)[kSlab / 2], int kTokens>
  [[gnu::always_inline]] static void bf16_chain(const float* weights, const WidePairs (&x)[kTokens], std::size_t begin, std::size_t count,
                                                F (&sums)[kSubs][kTokens]) noexcept {
    for (int t = 0; t < kTokens; ++t) {
      for (int s = 0; s < kSubs; ++s) sums[s][t] = V::zero();
    }
    for (std::size_t p = 0; p < count; ++p, weights += 2 * tiles::kRows) {
      F w[kSubs];
      for (int s = 0; s < kSubs; ++s) w[s] = V::load(weights + static_cast<std::size_t>(s) * V::kN);
      for (int t = 0; t < kTokens; ++t) {
        const F x_p = V::set1((x[t].*kHalf)[begin + p]);
        for (int s = 0; s < kSubs; ++s) sums[s][t] = V::fma(w[s], x_p, sums[s][t]);
      }
    }
  }

  /// Per 32 k two chains from zero, over the even and over the odd elements; acc = acc + (even + odd).
  template <int kRowSubs, int kTokens>
  static void bf16_rows(const LinearTile& job, std::size_t token, std::size_t sub, WeightsAhead& ahead) noexcept {
    const BF16* x[kTokens];
    F acc[kRowSubs][kTokens];
    for (int t = 0; t < kTokens; ++t) {
      x[t] = job.x->bf16_row(job.first_token + token + static_cast<std::size_t>(t));
      for (int s = 0; s < kRowSubs; ++s) acc[s][t] = V::zero();
    }
    const std::byte* weights = job.tile + sub * V::kN * 4;
    const std::size_t pairs = (job.columns + 1) / 2;
    for (std::size_t first = 0; first < pairs; first += kBf16GroupPairs) {
      ahead.step();
      add_bf16_group<kRowSubs, kTokens>(weights, x, first, first + kBf16GroupPairs < pairs ? first + kBf16GroupPairs : pairs, acc);
    }
    float* out = job.out + token * job.out_stride + sub * V::kN;
    for (int s = 0; s < kRowSubs; ++s) {
      for (int t = 0; t < kTokens; ++t) {
        V::storeu(out + static_cast<std::size_t>(t) * job.out_stride + static_cast<std::size_t>(s) * V::kN, acc[s][t]);
      }
    }
  }

  template <int kRowSubs, int kTokens>
  [[gnu::always_inline]] static void add_bf16_group(const std::byte* weights, const BF16* const (&x)[kTokens], std::size_t first,
                                                    std::size_t last, F (&acc)[kRowSubs][kTokens]) noexcept {
    F even[kRowSubs][kTokens];
    F odd[kRowSubs][kTokens];
    for (int s = 0; s < kRowSubs; ++s) {
      for (int t = 0; t < kTokens; ++t) even[s][t] = odd[s][t] = V::zero();
    }
    for (std::size_t p = first; p < last; ++p) {
      for (int s = 0; s < kRowSubs; ++s) {
        const std::byte* pair = weights + p * tiles::kRows * 4 + static_cast<std::size_t>(s) * V::kN * 4;
        const I w = V::loadu_i(reinterpret_cast<const std::int32_t*>(pair));
        const auto [w_even, w_odd] = flushed(w);
        for (int t = 0; t < kTokens; ++t) {
          std::int32_t word;
          std::memcpy(&word, x[t] + 2 * p, sizeof(word));
          const I x_pair = V::set1_i(word);
          even[s][t] = V::fma(w_even, even_bf16(x_pair), even[s][t]);
          odd[s][t] = V::fma(w_odd, odd_bf16(x_pair), odd[s][t]);
        }
      }
    }
    for (int s = 0; s < kRowSubs; ++s) {
      for (int t = 0; t < kTokens; ++t) acc[s][t] = V::add(acc[s][t], V::add(even[s][t], odd[s][t]));
    }
  }
};

}  // namespace quench::generic
