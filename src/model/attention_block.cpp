#include "model/attention_block.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/profile.h"
#include "model/config.h"

namespace quench {
namespace {

// Queries that share one pass over a page: 64 of 128 channels and their outputs are 64 KiB, beside a page of 32 KiB in a 512 KiB L2;
// more would not cut the reading of pages by much.
constexpr std::size_t kQueriesPerItem = 64;

std::size_t rows_per_item(const ModelConfig& config, std::size_t max_rows) {
  return std::clamp<std::size_t>(kQueriesPerItem / config.heads_per_kv_head(), 1, max_rows);
}

/// The oldest position that a query at `position` sees.
std::size_t first_visible(std::size_t window, std::size_t position) noexcept {
  return window == 0 || position < window ? 0 : position - window + 1;
}

}  // namespace

AttentionScratch::AttentionScratch(std::size_t max_queries, std::size_t head_dim)
    : queries(max_queries * head_dim, "attention scratch"),
      out(max_queries * head_dim, "attention scratch"),
      states(max_queries),
      first(max_queries),
      last(max_queries) {}

AttentionBlock::AttentionBlock(const ModelConfig& config, std::size_t max_rows, int threads)
    : n_kv_heads_(config.n_kv_heads),
      group_heads_(config.heads_per_kv_head()),
      head_dim_(config.head_dim),
      rows_per_item_(rows_per_item(config, max_rows)) {
  for (int i = 0; i < threads; ++i) scratch_.emplace_back(rows_per_item_ * group_heads_, head_dim_);
}

void AttentionBlock::append(const Compute& compute, const StepPlace& place, const HeadTransform& transform,
                            View<float, Seq, KvChannels> keys, View<float, Seq, KvChannels> values) const {
  const ProfileScope scope(compute.profile, "append");
  // One item per page and head: neighbouring positions share cache lines of the key strips.
  const std::size_t n = keys.size<Seq>();
  const std::size_t first_page = place.pos0 / kPagePositions;
  const std::size_t n_pages = ceil_div(place.pos0 + n, kPagePositions) - first_page;
  compute.pool.run(n_pages * n_kv_heads_, [&](std::size_t index, int) noexcept {
    const std::size_t page = first_page + index / n_kv_heads_;
    const std::size_t begin = std::max(place.pos0, page * kPagePositions);
    const std::size_t end = std::min(place.pos0 + n, (page + 1) * kPagePositions);
    append_rows(compute, place, transform, {.kv_head = index % n_kv_heads_, .first_row = begin - place.pos0, .n_rows = end - begin}, keys,
                values);
  });
}

void AttentionBlock::attend(const Compute& compute, const StepPlace& place, const HeadTransform& transform, const AttentionOptions& options,
                            std::size_t first_row, View<float, Seq, QueryChannels> queries) {
  const ProfileScope scope(compute.profile, "attention");
  const std::size_t n = queries.size<Seq>() - first_row;
  const std::size_t n_blocks = ceil_div(n, rows_per_item_);
  compute.pool.run(n_blocks * n_kv_heads_, [&](std::size_t index, int worker) noexcept {
    // Later rows see more positions: they go first, so that the threads finish together.
    const std::size_t block = n_blocks - 1 - index / n_kv_heads_;
    const std::size_t begin = block * rows_per_item_;
    const Item item{.kv_head = index % n_kv_heads_, .first_row = first_row + begin, .n_rows = std::min(rows_per_item_, n - begin)};
    attend_rows(compute, place, transform, options, item, queries, scratch_[static_cast<std::size_t>(worker)]);
  });
}

void AttentionBlock::append_and_attend_one(const Compute& compute, const StepPlace& place, const HeadTransform& transform,
                                           const AttentionOptions& options, View<float, Seq, QueryChannels> queries,
                                           View<float, Seq, KvChannels> keys, View<float, Seq, KvChannels> values) {
  const ProfileScope scope(compute.profile, "append and attention");
  compute.pool.run(n_kv_heads_, [&](std::size_t kv_head, int worker) noexcept {
    const Item item{.kv_head = kv_head, .first_row = 0, .n_rows = 1};
    append_rows(compute, place, transform, item, keys, values);
    attend_rows(compute, place, transform, options, item, queries, scratch_[static_cast<std::size_t>(worker)]);
  });
}

void AttentionBlock::append_rows(const Compute& compute, const StepPlace& place, const HeadTransform& transform, const Item& item,
                                 View<float, Seq, KvChannels> keys, View<float, Seq, KvChannels> values) const noexcept {
  const KernelTable& kernels = compute.kernels;
  const LayerWeights& weights = *transform.weights;
  const std::size_t offset = item.kv_head * head_dim_;
  KvCache& cache = place.sequence->cache();
  for (std::size_t row = item.first_row; row < item.first_row + item.n_rows; ++row) {
    float* key = keys.row(row).data() + offset;
    float* value = values.row(row).data() + offset;
    if (!weights.key_bias.empty()) kernels.add(key, weights.key_bias.data() + offset, head_dim_);
    if (!weights.key_norm.empty()) kernels.rms_norm(key, weights.key_norm.data(), head_dim_, transform.norm_epsilon, key);
    kernels.rope(key, transform.rope->cos_row(row), transform.rope->sin_row(row), transform.rope->n_rot(), transform.rope->style());
    if (!weights.value_bias.empty()) kernels.add(value, weights.value_bias.data() + offset, head_dim_);

    const std::size_t position = place.pos0 + row;
    const PageId page = place.sequence->page(place.layer, position / kPagePositions);
    kernels.store_key_f16(cache.keys(place.layer, page, item.kv_head), position % kPagePositions, key, head_dim_);
    kernels.store_value_f16(cache.values(place.layer, page, item.kv_head), position % kPagePositions, value, head_dim_);
  }
}

void AttentionBlock::load_queries(const Compute& compute, const HeadTransform& transform, const AttentionOptions& options, const Item& item,
                                  View<const float, Seq, QueryChannels> queries, AttentionScratch& scratch) const noexcept {
  const KernelTable& kernels = compute.kernels;
  const LayerWeights& weights = *transform.weights;
  float* query = scratch.queries.data();
  for (std::size_t row = item.first_row; row < item.first_row + item.n_rows; ++row) {
    for (std::size_t head = item.kv_head * group_heads_; head < (item.kv_head + 1) * group_heads_; ++head, query += head_dim_) {
      const std::size_t offset = head * head_dim_;
      std::memcpy(query, queries.row(row).data() + offset, head_dim_ * sizeof(float));
      if (!weights.query_bias.empty()) kernels.add(query, weights.query_bias.data() + offset, head_dim_);
      if (!weights.query_norm.empty()) kernels.rms_norm(query, weights.query_norm.data(), head_dim_, transform.norm_epsilon, query);
      kernels.rope(query, transform.rope->cos_row(row), transform.rope->sin_row(row), transform.rope->n_rot(), transform.rope->style());
      kernels.scale(query, options.query_scale, head_dim_);
    }
  }
}

void AttentionBlock::walk_pages(const Compute& compute, const StepPlace& place, const AttentionOptions& options, const Item& item,
                                AttentionScratch& scratch) const noexcept {
  const std::size_t n_queries = item.n_rows * group_heads_;
  std::fill_n(scratch.states.begin(), n_queries, AttentionState{.max = -std::numeric_limits<float>::infinity(), .sum = 0.0f});
  KvCache& cache = place.sequence->cache();
  const std::size_t first_position = place.pos0 + item.first_row;
  const std::size_t last_position = first_position + item.n_rows - 1;

  for (std::size_t page = first_visible(options.window, first_position) / kPagePositions; page <= last_position / kPagePositions; ++page) {
    const auto page_start = static_cast<std::ptrdiff_t>(page * kPagePositions);
    for (std::size_t i = 0; i < n_queries; ++i) {
      const std::size_t position = first_position + i / group_heads_;
      const auto oldest = static_cast<std::ptrdiff_t>(first_visible(options.window, position));
      const auto end = static_cast<std::ptrdiff_t>(position) + 1;
      constexpr auto kSlots = static_cast<std::ptrdiff_t>(kPagePositions);
      scratch.first[i] = static_cast<int>(std::clamp<std::ptrdiff_t>(oldest - page_start, 0, kSlots));
      scratch.last[i] = static_cast<int>(std::clamp<std::ptrdiff_t>(end - page_start, 0, kSlots));
    }
    const PageId id = place.sequence->page(place.layer, page);
    compute.kernels.attend_page_f16({.queries = scratch.queries.data(),
                                     .query_stride = head_dim_,
                                     .n_queries = n_queries,
                                     .head_dim = head_dim_,
                                     .keys = cache.keys(place.layer, id, item.kv_head),
                                     .values = cache.values(place.layer, id, item.kv_head),
                                     .first = scratch.first.data(),
                                     .last = scratch.last.data(),
                                     .soft_cap = options.soft_cap,
                                     .states = scratch.states.data(),
                                     .out = scratch.out.data(),
                                     .out_stride = head_dim_});
  }
}

void AttentionBlock::attend_rows(const Compute& compute, const StepPlace& place, const HeadTransform& transform,
                                 const AttentionOptions& options, const Item& item, View<float, Seq, QueryChannels> queries,
                                 AttentionScratch& scratch) const noexcept {
  load_queries(compute, transform, options, item, queries, scratch);
  walk_pages(compute, place, options, item, scratch);
  float* out = scratch.out.data();
  for (std::size_t i = 0; i < item.n_rows * group_heads_; ++i, out += head_dim_) {
    compute.kernels.finish_attention(out, scratch.states[i].sum, head_dim_);
    const std::size_t head = item.kv_head * group_heads_ + i % group_heads_;
    std::memcpy(queries.row(item.first_row + i / group_heads_).data() + head * head_dim_, out, head_dim_ * sizeof(float));
  }
}

}  // namespace quench
