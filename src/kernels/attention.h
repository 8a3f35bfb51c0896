#pragma once

#include <cstddef>
#include <limits>

#include "base/float16.h"

namespace quench {

/// Positions of one page of the KV cache. Attention walks pages in ascending order.
inline constexpr std::size_t kPagePositions = 64;
/// Keys of a page lie in strips of 16 positions, [64/16][head_dim][16]: lanes run across positions.
inline constexpr std::size_t kStripPositions = 16;

/// F16 elements of one head's keys (and of its values) in one page.
[[nodiscard]] constexpr std::size_t page_head_elements(std::size_t head_dim) noexcept { return kPagePositions * head_dim; }

/// The score of a slot that a query does not see, and the maximum before the first page.
inline constexpr float kNoScore = -std::numeric_limits<float>::infinity();

/// The running result of attention for one query over the pages so far: softmax numerator sum and weighted values relative to `max`.
/// Before the first page: max = kNoScore, sum = 0.
struct AttentionState {
  float max;
  float sum;
};

/// One page against n_queries queries of one KV head (all query heads of its group, one or more tokens), folded into their states.
///
/// For each query, over its visible slots [first[i], last[i]) of the page, first < last <= 64 (a page without visible slots is skipped:
/// first >= last):
///   s[p] = sum_d fma(q[d], k[p][d])           d ascending, from +0; if soft_cap > 0: s = cap * tanh(s / cap)
///   m = max s; e[p] = exp(s[p] - m); invisible slots have e = +0 and are never multiplied
///   l = sum of e over the 64 slots: 16 strided partial sums, pairwise fold
///   o[d] = sum_p fma(e[p], v[p][d])           p ascending over the visible slots, from +0
/// then the fold: first page: (max, sum, out) = (m, l, o); else M = max(max, m), a = exp(max - M), b = exp(m - M),
///   sum = fma(l, b, sum * a), out[d] = fma(o[d], b, out[d] * a), max = M.
/// Source: Milakov & Gimelshein 2018 (online softmax).
struct AttendPage {
  const float* queries;  ///< [n_queries][head_dim], already scaled; query_stride apart
  std::size_t query_stride;
  std::size_t n_queries;
  std::size_t head_dim;    ///< a multiple of 8, at most 512
  const F16* keys;         ///< [64/16][head_dim][16]
  const F16* values;       ///< [64][head_dim]
  const int* first;        ///< [n_queries]
  const int* last;         ///< [n_queries]
  float soft_cap;          ///< 0 = none
  AttentionState* states;  ///< [n_queries]
  float* out;              ///< [n_queries][head_dim]; out_stride apart
  std::size_t out_stride;
};

}  // namespace quench
