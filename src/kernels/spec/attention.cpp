#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernels/fillers.h"
#include "kernels/spec/exp.h"
#include "kernels/spec/row_sum.h"

// The definition of the cache's layouts and of attention over one page (kernels/attention.h, docs/attention.md).

namespace quench::spec {
namespace {

using PageRow = std::array<float, kPagePositions>;

/// Keys and values in f16.
struct F16Pages {
  static std::size_t key_index(std::size_t slot, std::size_t d, std::size_t head_dim) noexcept {
    return (slot / kStripPositions * head_dim + d) * kStripPositions + slot % kStripPositions;
  }

  static void store_key(std::byte* page_keys, std::size_t slot, const float* key, std::size_t head_dim) noexcept {
    auto* keys = reinterpret_cast<F16*>(page_keys);
    for (std::size_t d = 0; d < head_dim; ++d) keys[key_index(slot, d, head_dim)] = to_f16_saturate(key[d]);
  }

  static void store_value(std::byte* page_values, std::size_t slot, const float* value, std::size_t head_dim) noexcept {
    auto* values = reinterpret_cast<F16*>(page_values);
    for (std::size_t d = 0; d < head_dim; ++d) values[slot * head_dim + d] = to_f16_saturate(value[d]);
  }

  static float score(const AttendPage& page, std::size_t query, std::size_t slot) noexcept {
    const auto* keys = reinterpret_cast<const F16*>(page.keys);
    const float* q = page.queries + query * page.query_stride;
    float sum = 0.0f;
    for (std::size_t d = 0; d < page.head_dim; ++d) sum = __builtin_fmaf(q[d], to_f32(keys[key_index(slot, d, page.head_dim)]), sum);
    return sum;
  }

  static float weighted(const AttendPage& page, float weight, std::size_t slot, std::size_t d, float sum) noexcept {
    return __builtin_fmaf(weight, to_f32(reinterpret_cast<const F16*>(page.values)[slot * page.head_dim + d]), sum);
  }
};

/// Keys and values in int8 with a scale per 32 channels.
struct Q8Pages {
  static std::size_t key_index(std::size_t slot, std::size_t d, std::size_t head_dim) noexcept {
    return ((slot / kStripPositions * (head_dim / 2) + d / 2) * kStripPositions + slot % kStripPositions) * 2 + d % 2;
  }
  static std::size_t scale_index(std::size_t slot, std::size_t block) noexcept { return block * kPagePositions + slot; }

  /// The scale is rounded to f16 before the quants are made, so that they belong to what will be multiplied.
  template <class Place>
  static void store(std::byte* page, std::size_t slot, const float* row, std::size_t head_dim, const Place& place) noexcept {
    auto* scales = reinterpret_cast<F16*>(page + kPagePositions * head_dim);
    for (std::size_t block = 0; block < head_dim / kCacheBlockChannels; ++block) {
      const float* x = row + block * kCacheBlockChannels;
      float most = 0.0f;
      for (std::size_t i = 0; i < kCacheBlockChannels; ++i) most = std::fabs(x[i]) > most ? std::fabs(x[i]) : most;
      const F16 scale = to_f16_saturate(most / 127.0f);
      scales[scale_index(slot, block)] = scale;
      const float d = to_f32(scale);
      for (std::size_t i = 0; i < kCacheBlockChannels; ++i) {
        const float ratio = d == 0.0f ? 0.0f : x[i] / d;
        place(block * kCacheBlockChannels + i, static_cast<std::int8_t>(std::nearbyint(std::clamp(ratio, -127.0f, 127.0f))));
      }
    }
  }

  static void store_key(std::byte* page_keys, std::size_t slot, const float* key, std::size_t head_dim) noexcept {
    store(page_keys, slot, key, head_dim,
          [&](std::size_t d, std::int8_t quant) noexcept { page_keys[key_index(slot, d, head_dim)] = static_cast<std::byte>(quant); });
  }

  static void store_value(std::byte* page_values, std::size_t slot, const float* value, std::size_t head_dim) noexcept {
    store(page_values, slot, value, head_dim,
          [&](std::size_t d, std::int8_t quant) noexcept { page_values[slot * head_dim + d] = static_cast<std::byte>(quant); });
  }

  static float scale(const std::byte* page, std::size_t head_dim, std::size_t slot, std::size_t block) noexcept {
    return to_f32(reinterpret_cast<const F16*>(page + kPagePositions * head_dim)[scale_index(slot, block)]);
  }

  static float score(const AttendPage& page, std::size_t query, std::size_t slot) noexcept {
    const std::size_t head_dim = page.head_dim;
    float sum = 0.0f;
    for (std::size_t block = 0; block < head_dim / kCacheBlockChannels; ++block) {
      std::int32_t dot = 0;
      for (std::size_t d = block * kCacheBlockChannels; d < (block + 1) * kCacheBlockChannels; ++d) {
        dot += std::bit_cast<std::int8_t>(page.keys[key_index(slot, d, head_dim)]) * page.query_quants[query * head_dim + d];
      }
      const float query_scale = page.query_scales[query * (head_dim / kCacheBlockChannels) + block];
      sum = __builtin_fmaf(scale(page.keys, head_dim, slot, block) * query_scale, static_cast<float>(dot), sum);
    }
    return sum;
  }

  static float weighted(const AttendPage& page, float weight, std::size_t slot, std::size_t d, float sum) noexcept {
    const auto quant = std::bit_cast<std::int8_t>(page.values[slot * page.head_dim + d]);
    return __builtin_fmaf(weight * scale(page.values, page.head_dim, slot, d / kCacheBlockChannels), static_cast<float>(quant), sum);
  }
};

float row_max(const PageRow& row) noexcept {
  Partials partials;
  partials.fill(kNoScore);
  for (std::size_t p = 0; p < kPagePositions; ++p) partials[p % 16] = partials[p % 16] > row[p] ? partials[p % 16] : row[p];
  return fold_max(partials);
}

float row_sum(const PageRow& row) noexcept {
  Partials partials{};
  for (std::size_t p = 0; p < kPagePositions; ++p) partials[p % 16] = partials[p % 16] + row[p];
  return fold_sum(partials);
}

void quantize_queries(const float* x, std::size_t n, std::int16_t* quants, float* scales) noexcept {
  constexpr float kMost = 32767.0f;
  for (std::size_t block = 0; block < n / kCacheBlockChannels; ++block) {
    const float* in = x + block * kCacheBlockChannels;
    float most = 0.0f;
    for (std::size_t i = 0; i < kCacheBlockChannels; ++i) most = std::fabs(in[i]) > most ? std::fabs(in[i]) : most;
    const float d = most / kMost;
    scales[block] = d;
    for (std::size_t i = 0; i < kCacheBlockChannels; ++i) {
      const float ratio = d == 0.0f ? 0.0f : in[i] / d;
      quants[block * kCacheBlockChannels + i] = static_cast<std::int16_t>(std::nearbyint(std::clamp(ratio, -kMost, kMost)));
    }
  }
}

void fold_attention(AttentionState& state, float* out, const AttentionState& page, const float* page_out, std::size_t head_dim) noexcept {
  const bool first_page = state.max == kNoScore;
  const float max = state.max > page.max ? state.max : page.max;
  const float keep = exp(state.max - max);
  const float take = exp(page.max - max);
  for (std::size_t d = 0; d < head_dim; ++d) out[d] = first_page ? page_out[d] : __builtin_fmaf(page_out[d], take, out[d] * keep);
  state.sum = first_page ? page.sum : __builtin_fmaf(page.sum, take, state.sum * keep);
  state.max = max;
}

template <class Pages>
void attend_query(const AttendPage& page, std::size_t query) noexcept {
  const auto first = static_cast<std::size_t>(page.first[query]);
  const auto last = static_cast<std::size_t>(page.last[query]);
  PageRow scores;
  scores.fill(kNoScore);
  for (std::size_t p = first; p < last; ++p) {
    scores[p] = Pages::score(page, query, p);
    if (page.soft_cap > 0.0f) scores[p] = soft_cap(scores[p], page.soft_cap);
  }
  const float page_max = row_max(scores);

  PageRow weights{};
  for (std::size_t p = first; p < last; ++p) weights[p] = exp(scores[p] - page_max);
  std::array<float, kMaxHeadDim> out;
  for (std::size_t d = 0; d < page.head_dim; ++d) {
    out[d] = 0.0f;
    for (std::size_t p = first; p < last; ++p) out[d] = Pages::weighted(page, weights[p], p, d, out[d]);
  }
  fold_attention(page.states[query], page.out + query * page.out_stride, {page_max, row_sum(weights)}, out.data(), page.head_dim);
}

template <class Pages>
void attend_page(const AttendPage& page) noexcept {
  for (std::size_t query = 0; query < page.n_queries; ++query) {
    if (page.first[query] < page.last[query]) attend_query<Pages>(page, query);
  }
}

template <class Pages>
constexpr CacheKernels kKernels = {Pages::store_key, Pages::store_value, attend_page<Pages>};

void finish_attention(float* out, float sum, std::size_t head_dim) noexcept {
  for (std::size_t d = 0; d < head_dim; ++d) out[d] = out[d] / sum;
}

}  // namespace

void fill_attention(KernelTable& table) {
  table.caches[static_cast<std::size_t>(CacheType::kF16)] = kKernels<F16Pages>;
  table.caches[static_cast<std::size_t>(CacheType::kQ8_0)] = kKernels<Q8Pages>;
  table.quantize_queries = quantize_queries;
  table.fold_attention = fold_attention;
  table.finish_attention = finish_attention;
}

}  // namespace quench::spec
