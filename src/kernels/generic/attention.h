#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/generic/cache_pages.h"
#include "kernels/generic/exp.h"
#include "kernels/generic/query_sums.h"
#include "kernels/generic/repeat.h"
#include "kernels/generic/row_sum.h"
#include "kernels/table.h"

namespace quench::generic {

/// kernels/spec/attention.cpp over lanes: lanes run across positions for the scores, across channels for the values, so each sum is
/// one chain in the order that spec gives. Queries are taken in blocks that share every load of a key and a value.
template <class L, class Pages>
struct PageKernel {
  using F = typename L::F;
  using E = Exp<L>;

  // A block of r queries keeps r x registers_per_query(r) accumulators, each a chain of fma: latency 4 at 2 a cycle wants 8 of them.
  // Of AVX2's 16 registers 8 are accumulators (1 query x 8, 2 x 4, 3 x 2, 4 x 2), and 12 for 6 queries, as a strip is 2 registers
  // wide; the others hold the shared keys or values and a broadcast. (3 x 4 would leave one register over: GCC fits it in and gains
  // nothing, clang spills and takes twice the time.) AVX-512 and NEON have 32: 24 accumulators, 6 queries x 4.
  static constexpr std::size_t kMaxQueries = 6;
  static constexpr std::size_t kAccumulators = L::kN == 8 ? 8 : 24;
  /// Registers that the scores of one page fill: no block needs more of them per query.
  static constexpr std::size_t kPageRegisters = kPagePositions / L::kN;
  static constexpr std::size_t kStripRegisters = kStripPositions / L::kN;

  static constexpr std::size_t registers_per_query(std::size_t queries) {
    std::size_t registers = kPageRegisters;
    while (registers * queries > kAccumulators) registers /= 2;
    return registers < kStripRegisters ? kStripRegisters : registers;
  }

  static void attend_page(const AttendPage& page) noexcept {
    std::size_t remaining = 0;
    for (std::size_t i = 0; i < page.n_queries; ++i) remaining += page.first[i] < page.last[i] ? 1 : 0;
    if constexpr (Pages::kWidens) {
      if (remaining >= kManyQueries && page.head_dim <= kWidenedChannels) return attend_widened(page, remaining);
    }
    attend_queries(page, remaining);
  }

  /// The `remaining` queries that see anything of the page.
  static void attend_queries(const AttendPage& page, std::size_t remaining) noexcept {
    // Blocks of nearly equal size: seven queries as 4 + 3, not 6 + 1.
    std::size_t blocks = (remaining + kMaxQueries - 1) / kMaxQueries;
    std::size_t next = 0;
    BlockResult results[kMaxBlocks];
    while (blocks > 0) {
      // The keys first, for all blocks, then the values: either fits in L1.
      const std::size_t n_blocks = blocks < kMaxBlocks ? blocks : kMaxBlocks;
      for (std::size_t b = 0; b < n_blocks; ++b, --blocks) {
        BlockResult& result = results[b];
        result.count = (remaining + blocks - 1) / blocks;
        for (std::size_t taken = 0; taken < result.count; ++next) {
          if (page.first[next] < page.last[next]) result.queries[taken++] = next;
        }
        remaining -= result.count;
        with_block(page, result, [](auto block) QUENCH_INLINE { block.weigh_positions(); });
      }
      for (std::size_t b = 0; b < n_blocks; ++b) with_block(page, results[b], [](auto block) QUENCH_INLINE { block.add_values(); });
    }
  }

 private:
  // From so many queries on, a page is widened to f32 once instead of for each block of them.
  static constexpr std::size_t kManyQueries = 2 * kMaxQueries;
  static constexpr std::size_t kWidenedChannels = 256;
  // Those of a unit of 128 queries (model/attention_block.cpp).
  static constexpr std::size_t kMaxBlocks = 22;

  static void attend_widened(const AttendPage& page, std::size_t remaining) noexcept {
    typename Pages::template WidePage<kWidenedChannels> wide(page);
    AttendPage widened = page;
    wide.show_to(widened);
    PageKernel<L, typename Pages::Widened>::attend_queries(widened, remaining);
  }

  /// A block's queries, and what the first half of its work leaves for the second.
  struct BlockResult {
    std::size_t count;
    std::size_t queries[kMaxQueries];
    bool first_page[kMaxQueries];
    // Scores, then softmax weights.
    alignas(64) PageWeights<kMaxQueries> weights;
    // exp(max - M) of each query, then exp(m - M).
    alignas(64) float factors[16];
  };

  template <typename Work>
  static void with_block(const AttendPage& page, BlockResult& result, const Work& work) noexcept {
    switch (result.count) {
      case 1: return work(Block<1>(page, result));
      case 2: return work(Block<2>(page, result));
      case 3: return work(Block<3>(page, result));
      case 4: return work(Block<4>(page, result));
      case 5: return work(Block<5>(page, result));
      default: return work(Block<6>(page, result));
    }
  }

  template <std::size_t kQueries>
  struct Block {
    const AttendPage& page;
    const std::size_t (&queries)[kQueries];
    float* out[kQueries];
    AttentionState* state[kQueries];
    std::size_t first[kQueries] = {};
    std::size_t last[kQueries] = {};
    // The slots that every query of the block sees; empty when there are none.
    std::size_t shared_first = 0;
    std::size_t shared_last = kPagePositions;
    bool (&first_page)[kMaxQueries];
    PageWeights<kQueries>& weights;
    float (&factors)[16];

    Block(const AttendPage& the_page, BlockResult& result) noexcept
        : page(the_page),
          queries(reinterpret_cast<const std::size_t (&)[kQueries]>(result.queries)),
          first_page(result.first_page),
          weights(reinterpret_cast<PageWeights<kQueries>&>(result.weights)),
          factors(result.factors) {
      for (std::size_t r = 0; r < kQueries; ++r) {
        const std::size_t q = queries[r];
        out[r] = page.out + q * page.out_stride;
        state[r] = page.states + q;
        first[r] = static_cast<std::size_t>(page.first[q]);
        last[r] = static_cast<std::size_t>(page.last[q]);
        if (first[r] > shared_first) shared_first = first[r];
        if (last[r] < shared_last) shared_last = last[r];
      }
      if (shared_first > shared_last) shared_first = shared_last = kPagePositions;
    }

    void weigh_positions() noexcept {
      score_strips();
      softmax();
    }

    void add_values() noexcept {
      const typename Pages::template Weights<kQueries> value_weights(page, weights);
      constexpr std::size_t kRegisters = registers_per_query(kQueries);
      std::size_t d = 0;
      for (; d + kRegisters * L::kN <= page.head_dim; d += kRegisters * L::kN) sum_values<kRegisters>(value_weights, d, L::kN);
      for (; d + L::kN <= page.head_dim; d += L::kN) sum_values<1>(value_weights, d, L::kN);
      if (d < page.head_dim) sum_values<1>(value_weights, d, page.head_dim - d);
    }

    /// Strips that no query sees are left alone; the scores of slots that a query does not see are dropped in softmax().
    void score_strips() noexcept {
      std::size_t begin = kPagePositions;
      std::size_t end = 0;
      for (std::size_t r = 0; r < kQueries; ++r) {
        if (first[r] < begin) begin = first[r];
        if (last[r] > end) end = last[r];
      }
      constexpr std::size_t kStrips = registers_per_query(kQueries) / kStripRegisters;
      std::size_t strip = begin / kStripPositions;
      const std::size_t strips_end = (end + kStripPositions - 1) / kStripPositions;
      for (; strip + kStrips <= strips_end; strip += kStrips) Pages::template score<kQueries, kStrips>(page, queries, strip, weights);
      for (; strip < strips_end; ++strip) Pages::template score<kQueries, 1>(page, queries, strip, weights);
    }

    void softmax() noexcept {
      for (float& factor : factors) factor = 0.0f;
      float page_sum[kQueries];
      for (std::size_t r = 0; r < kQueries; ++r) {
        const float page_max = mask_and_max(r);
        page_sum[r] = exponentials(r, page_max);
        AttentionState& running = *state[r];
        first_page[r] = running.max == kNoScore;
        const float max = running.max > page_max ? running.max : page_max;
        factors[r] = running.max - max;
        factors[8 + r] = page_max - max;
        running.max = max;
      }
      for (std::size_t i = 0; i < 16; i += L::kN) L::store(factors + i, E::exp(L::load(factors + i)));
      for (std::size_t r = 0; r < kQueries; ++r) {
        AttentionState& running = *state[r];
        running.sum = first_page[r] ? page_sum[r] : __builtin_fmaf(page_sum[r], factors[8 + r], running.sum * factors[r]);
      }
    }

    float mask_and_max(std::size_t r) noexcept {
      float* row = weights[r];
      if (page.soft_cap > 0.0f) {
        const F cap = L::set1(page.soft_cap);
        const std::size_t begin = first[r] / kStripPositions * kStripPositions;
        for (std::size_t p = begin; p < last[r]; p += L::kN) L::store(row + p, E::soft_cap(L::load(row + p), cap));
      }
      for (std::size_t p = 0; p < first[r]; ++p) row[p] = kNoScore;
      for (std::size_t p = last[r]; p < kPagePositions; ++p) row[p] = kNoScore;
      Partials<L> maxima(kNoScore);
      for (std::size_t p = 0; p < kPagePositions; p += 16) {
        QUENCH_UNROLLED for (std::size_t j = 0; j < Partials<L>::kRegisters; ++j) {
          maxima.lanes[j] = L::max(maxima.lanes[j], L::load(row + p + j * L::kN));
        }
      }
      return maxima.fold_max();
    }

    /// Invisible slots hold -infinity, whose exponential is +0.
    float exponentials(std::size_t r, float page_max) noexcept {
      float* row = weights[r];
      const F max = L::set1(page_max);
      Partials<L> sums(0.0f);
      for (std::size_t p = 0; p < kPagePositions; p += 16) {
        QUENCH_UNROLLED for (std::size_t j = 0; j < Partials<L>::kRegisters; ++j) {
          const F e = E::exp(L::sub(L::load(row + p + j * L::kN), max));
          L::store(row + p + j * L::kN, e);
          sums.lanes[j] = L::add(sums.lanes[j], e);
        }
      }
      return sums.fold_sum();
    }

    /// Channels [d, d + kRegisters * kN), or `width` < kN channels when kRegisters is 1. Positions ascend for each query: those before
    /// the shared ones, the shared ones, those after.
    template <std::size_t kRegisters>
    void sum_values(const typename Pages::template Weights<kQueries>& value_weights, std::size_t d, std::size_t width) noexcept {
      // Registers whose channels are multiplied with the same weights.
      constexpr std::size_t kGroups = kRegisters * L::kN <= Pages::kWeightChannels ? 1 : kRegisters * L::kN / Pages::kWeightChannels;
      constexpr std::size_t kShared = kRegisters / kGroups;
      // One pointer and fixed distances: twelve pointers would not fit the registers.
      using ValueWeights = typename Pages::template Weights<kQueries>;
      const float* const weights_here = value_weights.at(d);
      const auto weight = [&](std::size_t r, std::size_t g, std::size_t p)
                              QUENCH_INLINE { return weights_here[r * ValueWeights::kQueryStride + g * ValueWeights::kBlockStride + p]; };
      QuerySums<L, kQueries, kRegisters> sums;
      std::size_t p = 0;
      const auto load = [&](std::size_t c) QUENCH_INLINE { return Pages::load_value(page, p, d + c * L::kN, width); };
      const auto add_alone = [&](std::size_t r) QUENCH_INLINE {
        repeat<static_cast<int>(kGroups)>(
            [&](auto g) __attribute__((always_inline)) { sums.template add<g * kShared, kShared>(r, weight(r, g, p), load); });
      };
      QUENCH_UNROLLED for (std::size_t r = 0; r < kQueries; ++r) {
        const std::size_t end = last[r] < shared_first ? last[r] : shared_first;
        for (p = first[r]; p < end; ++p) add_alone(r);
      }
      for (p = shared_first; p < shared_last; ++p) {
        repeat<static_cast<int>(kGroups)>([&](auto g) __attribute__((always_inline)) {
          sums.template add_all<g * kShared, kShared>([&](std::size_t r) QUENCH_INLINE { return weight(r, g, p); }, load);
        });
      }
      QUENCH_UNROLLED for (std::size_t r = 0; r < kQueries; ++r) {
        for (p = shared_last; p < last[r]; ++p) add_alone(r);
      }
      QUENCH_UNROLLED for (std::size_t r = 0; r < kQueries; ++r) {
        QUENCH_UNROLLED for (std::size_t c = 0; c < kRegisters; ++c) fold(r, d + c * L::kN, width, sums.of[r][c]);
      }
    }

    [[gnu::always_inline]] void fold(std::size_t r, std::size_t d, std::size_t width, F sum) noexcept {
      float* target = out[r] + d;
      const bool whole = L::kN <= 8 || width == L::kN;
      if (!first_page[r]) {
        const F running = whole ? L::loadu(target) : L::load_partial(target, width);
        sum = L::fma(sum, L::set1(factors[8 + r]), L::mul(running, L::set1(factors[r])));
      }
      if (whole) {
        L::storeu(target, sum);
      } else {
        L::store_partial(target, sum, width);
      }
    }
  };
};

/// What the table has for attention.
template <class L>
struct Attention {
  using F = typename L::F;
  using E = Exp<L>;

  static void fold(AttentionState& state, float* out, const AttentionState& page, const float* page_out, std::size_t head_dim) noexcept {
    if (state.max == kNoScore) {
      state = page;
      for_channels(head_dim, [&](std::size_t d, auto load, auto store) QUENCH_INLINE { store(out + d, load(page_out + d)); });
      return;
    }
    const float max = state.max > page.max ? state.max : page.max;
    alignas(64) float factors[16] = {state.max - max, page.max - max};
    for (std::size_t i = 0; i < 16; i += L::kN) L::store(factors + i, E::exp(L::load(factors + i)));
    const F keep = L::set1(factors[0]);
    const F take = L::set1(factors[1]);
    state.sum = __builtin_fmaf(page.sum, factors[1], state.sum * factors[0]);
    state.max = max;
    for_channels(head_dim, [&](std::size_t d, auto load, auto store)
                               QUENCH_INLINE { store(out + d, L::fma(load(page_out + d), take, L::mul(load(out + d), keep))); });
  }

  static void finish(float* out, float sum, std::size_t head_dim) noexcept {
    for_channels(head_dim,
                 [&](std::size_t d, auto load, auto store) QUENCH_INLINE { store(out + d, L::div(load(out + d), L::set1(sum))); });
  }

  static void fill(KernelTable& table) noexcept {
    table.caches[static_cast<std::size_t>(CacheType::kF16)] = kernels<F16Pages<L>>();
    table.caches[static_cast<std::size_t>(CacheType::kQ8_0)] = kernels<Q8Pages<L>>();
    table.quantize_queries = Q8Pages<L>::quantize_queries;
    table.fold_attention = fold;
    table.finish_attention = finish;
  }

 private:
  template <class Pages>
  static CacheKernels kernels() noexcept {
    return {Pages::store_key, Pages::store_value, PageKernel<L, Pages>::attend_page};
  }

  /// work(d, load, store) for each register of channels; the last one may be partial.
  template <typename Work>
  [[gnu::always_inline]] static void for_channels(std::size_t head_dim, const Work& work) noexcept {
    std::size_t d = 0;
    for (; d + L::kN <= head_dim; d += L::kN) {
      work(d, [](const float* x) QUENCH_INLINE { return L::loadu(x); }, [](float* x, F v) QUENCH_INLINE { L::storeu(x, v); });
    }
    if (d == head_dim) return;
    const std::size_t width = head_dim - d;
    work(
        d, [&](const float* x) QUENCH_INLINE { return L::load_partial(x, width); },
        [&](float* x, F v) QUENCH_INLINE { L::store_partial(x, v, width); });
  }
};

#undef QUENCH_UNROLLED
#undef QUENCH_INLINE

}  // namespace quench::generic
