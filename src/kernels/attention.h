#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/float16.h"

namespace quench {

/// How keys and values are kept.
enum class CacheType {
  kF16,  ///< rounded to nearest even, saturated at +-65504
  kQ8_0  ///< int8 in blocks of 32 channels with an f16 scale
};
inline constexpr std::array kCacheTypes = {CacheType::kF16, CacheType::kQ8_0};

/// "f16", "q8_0".
[[nodiscard]] std::string_view cache_type_name(CacheType type) noexcept;
[[nodiscard]] std::optional<CacheType> cache_type_from_name(std::string_view name) noexcept;

/// Positions of one page of the KV cache. Attention walks pages in ascending order.
inline constexpr std::size_t kPagePositions = 64;
/// Keys of a page lie in strips of 16 positions: lanes run across positions.
inline constexpr std::size_t kStripPositions = 16;
/// Channels that share a scale in a q8_0 cache; head_dim is a multiple of it there.
inline constexpr std::size_t kCacheBlockChannels = 32;
/// The most channels that a head may have.
inline constexpr std::size_t kMaxHeadDim = 512;

/// Bytes of one head's keys (and of its values) in one page; a multiple of 64.
/// f16   keys [64/16][head_dim][16]; values [64][head_dim]
/// q8_0  keys [64/16][head_dim/2][16][2]; values [64][head_dim]; behind either its scales [head_dim/32][64] in f16
[[nodiscard]] constexpr std::size_t page_head_bytes(CacheType type, std::size_t head_dim) noexcept {
  if (type == CacheType::kF16) return kPagePositions * head_dim * sizeof(F16);
  return kPagePositions * head_dim + kPagePositions * (head_dim / kCacheBlockChannels) * sizeof(F16);
}

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
///   f16:  s[p] = sum_d fma(q[d], k[p][d])                    d ascending, from +0
///   q8_0: s[p] = sum_b fma(dk[p][b] * dq[b], float(dot), s)  blocks b of 32 channels ascending, from +0; dot exact in int32
///   if soft_cap > 0: s = cap * tanh(s / cap)
///   m = max s; e[p] = exp(s[p] - m); invisible slots have e = +0 and are never multiplied
///   l = sum of e over the 64 slots: 16 strided partial sums, pairwise fold
///   o[d] = sum_p fma(w, v[p][d])              p ascending over the visible slots, from +0; w = e[p], for q8_0 e[p] * dv[p][d / 32]
/// then the fold of (m, l, o) into the state: see KernelTable::fold_attention.
/// Source: Milakov & Gimelshein 2018 (online softmax).
struct AttendPage {
  const float* queries;  ///< [n_queries][head_dim], already scaled; query_stride apart
  std::size_t query_stride;
  std::size_t n_queries;
  std::size_t head_dim;     ///< a multiple of 8 (32 for q8_0), at most kMaxHeadDim
  const std::byte* keys;    ///< as page_head_bytes says
  const std::byte* values;  ///< as page_head_bytes says
  const int* first;         ///< [n_queries]
  const int* last;          ///< [n_queries]
  float soft_cap;           ///< 0 = none
  AttentionState* states;   ///< [n_queries]
  float* out;               ///< [n_queries][head_dim]; out_stride apart
  std::size_t out_stride;

  // For a q8_0 cache: the queries as KernelTable::quantize_queries gives them, without gaps between rows.
  const std::int16_t* query_quants = nullptr;  ///< [n_queries][head_dim]
  const float* query_scales = nullptr;         ///< [n_queries][head_dim / 32]
};

/// What depends on the type of the cache.
struct CacheKernels {
  /// One position's key or value [head_dim] into slot `slot` of a head's keys or values.
  void (*store_key)(std::byte* page_keys, std::size_t slot, const float* key, std::size_t head_dim) noexcept = nullptr;
  void (*store_value)(std::byte* page_values, std::size_t slot, const float* value, std::size_t head_dim) noexcept = nullptr;
  void (*attend_page)(const AttendPage&) noexcept = nullptr;
};

}  // namespace quench
