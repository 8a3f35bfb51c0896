#include <array>

#include "kernels/fillers.h"
#include "kernels/spec/exp.h"
#include "kernels/spec/row_sum.h"

// The definition of the cache's layout and of attention over one page (kernels/attention.h, docs/attention.md).

namespace quench::spec {
namespace {

using PageRow = std::array<float, kPagePositions>;

std::size_t key_index(std::size_t slot, std::size_t d, std::size_t head_dim) noexcept {
  return (slot / kStripPositions * head_dim + d) * kStripPositions + slot % kStripPositions;
}

void store_key_f16(F16* page_keys, std::size_t slot, const float* key, std::size_t head_dim) noexcept {
  for (std::size_t d = 0; d < head_dim; ++d) page_keys[key_index(slot, d, head_dim)] = to_f16_saturate(key[d]);
}

void store_value_f16(F16* page_values, std::size_t slot, const float* value, std::size_t head_dim) noexcept {
  for (std::size_t d = 0; d < head_dim; ++d) page_values[slot * head_dim + d] = to_f16_saturate(value[d]);
}

float score(const AttendPage& page, const float* query, std::size_t slot) noexcept {
  float sum = 0.0f;
  for (std::size_t d = 0; d < page.head_dim; ++d) {
    sum = __builtin_fmaf(query[d], to_f32(page.keys[key_index(slot, d, page.head_dim)]), sum);
  }
  return page.soft_cap > 0.0f ? soft_cap(sum, page.soft_cap) : sum;
}

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

void attend_query(const AttendPage& page, std::size_t query) noexcept {
  const auto first = static_cast<std::size_t>(page.first[query]);
  const auto last = static_cast<std::size_t>(page.last[query]);
  PageRow scores;
  scores.fill(kNoScore);
  for (std::size_t p = first; p < last; ++p) scores[p] = score(page, page.queries + query * page.query_stride, p);
  const float page_max = row_max(scores);

  PageRow weights{};
  for (std::size_t p = first; p < last; ++p) weights[p] = exp(scores[p] - page_max);
  const float page_sum = row_sum(weights);

  AttentionState& state = page.states[query];
  const bool first_page = state.max == kNoScore;
  const float max = state.max > page_max ? state.max : page_max;
  const float keep = exp(state.max - max);
  const float take = exp(page_max - max);
  float* out = page.out + query * page.out_stride;
  for (std::size_t d = 0; d < page.head_dim; ++d) {
    float sum = 0.0f;
    for (std::size_t p = first; p < last; ++p) sum = __builtin_fmaf(weights[p], to_f32(page.values[p * page.head_dim + d]), sum);
    out[d] = first_page ? sum : __builtin_fmaf(sum, take, out[d] * keep);
  }
  state.sum = first_page ? page_sum : __builtin_fmaf(page_sum, take, state.sum * keep);
  state.max = max;
}

void attend_page_f16(const AttendPage& page) noexcept {
  for (std::size_t query = 0; query < page.n_queries; ++query) {
    if (page.first[query] < page.last[query]) attend_query(page, query);
  }
}

void finish_attention(float* out, float sum, std::size_t head_dim) noexcept {
  for (std::size_t d = 0; d < head_dim; ++d) out[d] = out[d] / sum;
}

}  // namespace

void fill_attention(KernelTable& table) {
  table.store_key_f16 = store_key_f16;
  table.store_value_f16 = store_value_f16;
  table.attend_page_f16 = attend_page_f16;
  table.finish_attention = finish_attention;
}

}  // namespace quench::spec
