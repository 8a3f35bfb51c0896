#include "model/attention_block.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/checked.h"
#include "base/profile.h"
#include "model/config.h"

namespace quench {
namespace {

// Queries that share one pass over a page, and its widening to f32: 128 of 128 channels and their outputs are 128 KiB, beside a page of 64
// KiB in a 512 KiB L2.
constexpr std::size_t kQueriesPerUnit = 128;
// Items per thread, so that threads which start late or run slow even out.
constexpr std::size_t kItemsPerThread = 4;
// A page of 128 channels takes one query head about a microsecond, and claiming an item 0.1: four pages are the least that is worth one.
constexpr std::size_t kMinPagesPerItem = 4;
// Results of shared-out pages: beyond this, units go unshared. 32 heads of 128 channels reach it at 131,072 positions.
constexpr std::size_t kMaxResultBytes = std::size_t{32} << 20;

std::size_t most_rows_per_unit(const ModelConfig& config) noexcept {
  return std::max<std::size_t>(kQueriesPerUnit / config.heads_per_kv_head(), 1);
}

/// Fewer where the threads would not all have several units.
std::size_t rows_per_unit(const ModelConfig& config, std::size_t rows, std::size_t threads) noexcept {
  const std::size_t wanted_blocks = ceil_div(kItemsPerThread * threads, config.n_kv_heads);
  return std::clamp<std::size_t>(rows / wanted_blocks, 1, most_rows_per_unit(config));
}

// A head's channels of one row after the other: 4 KiB and more apart, which no processor prefetches by itself. Some 100 ns of work ahead.
constexpr std::size_t kRowsAhead = 2;

void prefetch(const float* channels, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += 16) __builtin_prefetch(channels + i);
}

/// A key is scattered over all lines of its strip: asked for before its rotation, they come together.
void prefetch_strip(CacheType type, const std::byte* page_keys, std::size_t slot, std::size_t head_dim) noexcept {
  const std::size_t strip_bytes = kStripPositions * head_dim * (type == CacheType::kF16 ? sizeof(F16) : 1);
  const std::byte* strip = page_keys + slot / kStripPositions * strip_bytes;
  constexpr int kToWrite = 1;
  for (std::size_t i = 0; i < strip_bytes; i += 64) __builtin_prefetch(strip + i, kToWrite);
}

/// The oldest position that a query at `position` sees.
std::size_t first_visible(std::size_t window, std::size_t position) noexcept {
  return window == 0 || position < window ? 0 : position - window + 1;
}

}  // namespace

AttentionBlock::Scratch::Scratch(std::size_t max_queries, std::size_t head_dim)
    : queries(max_queries * head_dim, "attention scratch"),
      out(max_queries * head_dim, "attention scratch"),
      quants(max_queries * head_dim, "attention scratch"),
      scales(max_queries * head_dim / kCacheBlockChannels + 1, "attention scratch"),
      states(max_queries),
      first(max_queries),
      last(max_queries) {}

AttentionBlock::AttentionBlock(const ModelConfig& config, std::size_t max_rows, int threads)
    : n_kv_heads_(config.n_kv_heads),
      group_heads_(config.heads_per_kv_head()),
      head_dim_(config.head_dim),
      rows_per_unit_(rows_per_unit(config, max_rows, static_cast<std::size_t>(threads))) {
  for (int i = 0; i < threads; ++i) scratch_.emplace_back(rows_per_unit_ * group_heads_, head_dim_);
}

std::size_t AttentionBlock::scratch_bytes(const ModelConfig& config) noexcept {
  // Queries and outputs in f32; quants of two bytes, a scale for 32 of them.
  return most_rows_per_unit(config) * config.heads_per_kv_head() * config.head_dim * (2 * sizeof(float) + 2 + 1);
}

void AttentionBlock::append(const AttentionCall& call, View<float, Seq, KvChannels> keys, View<float, Seq, KvChannels> values) {
  const ProfileScope scope(call.compute.profile, "append");
  // One unit per span, page and head: neighbouring positions share cache lines of the key strips.
  units_.clear();
  for (const StepSpan& span : call.spans) {
    for (std::size_t row = 0; row < span.n_rows;) {
      const std::size_t page = (span.pos0 + row) / kPagePositions;
      const std::size_t end = std::min((page + 1) * kPagePositions - span.pos0, span.n_rows);
      for (std::size_t head = 0; head < n_kv_heads_; ++head) {
        units_.push_back(
            {.span = &span, .kv_head = head, .first_row = span.first_row + row, .n_rows = end - row, .first_page = page, .n_pages = 1});
      }
      row = end;
    }
  }
  call.compute.pool.run(units_.size(), [&](std::size_t index, int) noexcept {
    const Unit& unit = units_[index];
    append_rows(call, *unit.span, unit.kv_head, unit.first_row, unit.n_rows, keys, values);
  });
}

void AttentionBlock::attend(const AttentionCall& call, View<float, Seq, QueryChannels> queries) {
  const ProfileScope scope(call.compute.profile, "attention");
  plan(call, rows_per_unit_);
  call.compute.pool.run(items_.size(), [&](std::size_t index, int worker) noexcept {
    attend_item(call, items_[index], queries, scratch_[static_cast<std::size_t>(worker)]);
  });
}

void AttentionBlock::append_and_attend(const AttentionCall& call, View<float, Seq, QueryChannels> queries,
                                       View<float, Seq, KvChannels> keys, View<float, Seq, KvChannels> values) {
  const ProfileScope scope(call.compute.profile, "append and attention");
  plan(call, 1);
  call.compute.pool.run(items_.size(), [&](std::size_t index, int worker) noexcept {
    const Item& item = items_[index];
    const Unit& unit = units_[item.unit];
    // Only the last pages hold the new position.
    if (item.part + 1 == unit.n_parts) append_rows(call, *unit.span, unit.kv_head, unit.first_row, 1, keys, values);
    attend_item(call, item, queries, scratch_[static_cast<std::size_t>(worker)]);
  });
}

/// Units in the order of their work, longest first, so that the threads finish together.
void AttentionBlock::plan(const AttentionCall& call, std::size_t rows_per_unit) {
  units_.clear();
  for (const StepSpan& span : call.spans) {
    for (std::size_t end = span.n_rows; end > 0;) {
      // Blocks are counted from the front: the last one may be short.
      const std::size_t begin = (end - 1) / rows_per_unit * rows_per_unit;
      const std::size_t first_page = first_visible(call.options.window, span.pos0 + begin) / kPagePositions;
      const std::size_t n_pages = (span.pos0 + end - 1) / kPagePositions + 1 - first_page;
      for (std::size_t head = 0; head < n_kv_heads_; ++head) {
        units_.push_back({.span = &span,
                          .kv_head = head,
                          .first_row = span.first_row + begin,
                          .n_rows = end - begin,
                          .first_page = first_page,
                          .n_pages = n_pages});
      }
      end = begin;
    }
  }
  if (call.spans.size() > 1) {
    std::ranges::sort(units_, std::greater<>(), [](const Unit& unit) { return unit.n_pages * unit.n_rows; });
  }
  share_out_pages(static_cast<std::size_t>(call.compute.pool.thread_count()));
}

void AttentionBlock::share_out_pages(std::size_t threads) {
  std::size_t work = 0;  // pages times queries
  for (const Unit& unit : units_) work += unit.n_pages * queries_of(unit);
  const std::size_t target = work / (threads * kItemsPerThread) + 1;
  const std::size_t most_results = kMaxResultBytes / (head_dim_ * sizeof(float));
  std::size_t results = 0;
  items_.clear();
  for (std::size_t index = 0; index < units_.size(); ++index) {
    Unit& unit = units_[index];
    const std::size_t unit_results = unit.n_pages * queries_of(unit);
    const std::size_t parts = std::min(ceil_div(unit_results, target), unit.n_pages / kMinPagesPerItem);
    // One and a half times the target is not worth the folding.
    const bool shared = threads > 1 && parts > 1 && 2 * unit_results > 3 * target && results + unit_results <= most_results;
    if (shared) {
      unit.n_parts = parts;
      unit.parts_left = static_cast<std::uint32_t>(parts);
      unit.first_result = results;
      results += unit_results;
    }
    // The last part appends: it goes first, as the longest.
    for (std::size_t part = unit.n_parts; part > 0; --part) items_.push_back({.unit = index, .part = part - 1});
  }
  if (results > result_states_.size()) {
    // By halves, so that a growing sequence allocates seldom.
    const std::size_t room = std::min(most_results, results + results / 2);
    result_states_ = AlignedArray<AttentionState>(room, "attention results");
    result_out_ = AlignedArray<float>(room * head_dim_, "attention results");
  }
}

void AttentionBlock::append_rows(const AttentionCall& call, const StepSpan& span, std::size_t kv_head, std::size_t first_row,
                                 std::size_t n_rows, View<float, Seq, KvChannels> keys,
                                 View<float, Seq, KvChannels> values) const noexcept {
  const KernelTable& kernels = call.compute.kernels;
  const LayerWeights& weights = call.transform.weights;
  const RopeTable& rope = call.transform.rope;
  const std::size_t offset = kv_head * head_dim_;
  KvCache& cache = span.sequence->cache();
  const CacheKernels& store = kernels.cache(cache.layout().type);
  for (std::size_t row = first_row; row < first_row + n_rows; ++row) {
    float* key = keys.row(row).data() + offset;
    float* value = values.row(row).data() + offset;
    if (row + kRowsAhead < first_row + n_rows) {
      prefetch(keys.row(row + kRowsAhead).data() + offset, head_dim_);
      prefetch(values.row(row + kRowsAhead).data() + offset, head_dim_);
    }
    const std::size_t in_span = row - span.first_row;
    const std::size_t rotation = span.rope_row + in_span;
    const std::size_t position = span.pos0 + in_span;
    const PageId page = span.sequence->page(call.layer, position / kPagePositions);
    std::byte* page_keys = cache.keys(call.layer, page, kv_head);
    std::byte* page_values = cache.values(call.layer, page, kv_head);
    if (row == first_row || position % kStripPositions == 0)
      prefetch_strip(cache.layout().type, page_keys, position % kPagePositions, head_dim_);
    if (!weights.key_bias.empty()) kernels.add(key, weights.key_bias.data() + offset, head_dim_);
    if (!weights.key_norm.empty()) kernels.rms_norm(key, weights.key_norm.data(), head_dim_, call.transform.norm_epsilon, key);
    kernels.rope(key, rope.cos_row(rotation), rope.sin_row(rotation), rope.n_rot(), rope.style());
    if (!weights.value_bias.empty()) kernels.add(value, weights.value_bias.data() + offset, head_dim_);

    store.store_key(page_keys, position % kPagePositions, key, head_dim_);
    store.store_value(page_values, position % kPagePositions, value, head_dim_);
  }
}

void AttentionBlock::load_queries(const AttentionCall& call, const Unit& unit, View<const float, Seq, QueryChannels> queries,
                                  Scratch& scratch) const noexcept {
  const KernelTable& kernels = call.compute.kernels;
  const LayerWeights& weights = call.transform.weights;
  const RopeTable& rope = call.transform.rope;
  float* query = scratch.queries.data();
  for (std::size_t row = unit.first_row; row < unit.first_row + unit.n_rows; ++row) {
    const std::size_t rotation = unit.span->rope_row + row - unit.span->first_row;
    if (row + kRowsAhead < unit.first_row + unit.n_rows) {
      prefetch(queries.row(row + kRowsAhead).data() + unit.kv_head * group_heads_ * head_dim_, group_heads_ * head_dim_);
    }
    for (std::size_t head = unit.kv_head * group_heads_; head < (unit.kv_head + 1) * group_heads_; ++head, query += head_dim_) {
      const std::size_t offset = head * head_dim_;
      const float* projected = queries.row(row).data() + offset;
      if (weights.query_norm.empty() || !weights.query_bias.empty()) {
        std::memcpy(query, projected, head_dim_ * sizeof(float));
        projected = query;
      }
      if (!weights.query_bias.empty()) kernels.add(query, weights.query_bias.data() + offset, head_dim_);
      if (!weights.query_norm.empty())
        kernels.rms_norm(projected, weights.query_norm.data(), head_dim_, call.transform.norm_epsilon, query);
      kernels.rope(query, rope.cos_row(rotation), rope.sin_row(rotation), rope.n_rot(), rope.style());
      kernels.scale(query, call.options.query_scale, head_dim_);
    }
  }
  if (unit.span->sequence->cache().layout().type == CacheType::kQ8_0) {
    kernels.quantize_queries(scratch.queries.data(), queries_of(unit) * head_dim_, scratch.quants.data(), scratch.scales.data());
  }
}

void AttentionBlock::attend_page(const AttentionCall& call, const Unit& unit, std::size_t page, AttentionState* states, float* out,
                                 Scratch& scratch) const noexcept {
  const StepSpan& span = *unit.span;
  const std::size_t first_position = span.pos0 + unit.first_row - span.first_row;
  const auto page_start = static_cast<std::ptrdiff_t>(page * kPagePositions);
  const std::size_t n_queries = queries_of(unit);
  for (std::size_t i = 0; i < n_queries; ++i) {
    const std::size_t position = first_position + i / group_heads_;
    const auto oldest = static_cast<std::ptrdiff_t>(first_visible(call.options.window, position));
    const auto end = static_cast<std::ptrdiff_t>(position) + 1;
    constexpr auto kSlots = static_cast<std::ptrdiff_t>(kPagePositions);
    scratch.first[i] = static_cast<int>(std::clamp<std::ptrdiff_t>(oldest - page_start, 0, kSlots));
    scratch.last[i] = static_cast<int>(std::clamp<std::ptrdiff_t>(end - page_start, 0, kSlots));
  }
  KvCache& cache = span.sequence->cache();
  const PageId id = span.sequence->page(call.layer, page);
  call.compute.kernels.cache(cache.layout().type)
      .attend_page({.queries = scratch.queries.data(),
                    .query_stride = head_dim_,
                    .n_queries = n_queries,
                    .head_dim = head_dim_,
                    .keys = cache.keys(call.layer, id, unit.kv_head),
                    .values = cache.values(call.layer, id, unit.kv_head),
                    .first = scratch.first.data(),
                    .last = scratch.last.data(),
                    .soft_cap = call.options.soft_cap,
                    .states = states,
                    .out = out,
                    .out_stride = head_dim_,
                    .query_quants = scratch.quants.data(),
                    .query_scales = scratch.scales.data()});
}

void AttentionBlock::attend_item(const AttentionCall& call, const Item& item, View<float, Seq, QueryChannels> queries,
                                 Scratch& scratch) noexcept {
  Unit& unit = units_[item.unit];
  const std::size_t n_queries = queries_of(unit);
  constexpr AttentionState kNothing{.max = kNoScore, .sum = 0.0f};
  load_queries(call, unit, queries, scratch);
  if (unit.n_parts == 1) {
    std::fill_n(scratch.states.begin(), n_queries, kNothing);
    for (std::size_t page = unit.first_page; page < unit.first_page + unit.n_pages; ++page) {
      attend_page(call, unit, page, scratch.states.data(), scratch.out.data(), scratch);
    }
    write_out(call, unit, queries, scratch);
    return;
  }
  const std::size_t begin = unit.n_pages * item.part / unit.n_parts;
  const std::size_t end = unit.n_pages * (item.part + 1) / unit.n_parts;
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t result = unit.first_result + i * n_queries;
    AttentionState* states = result_states_.data() + result;
    std::fill_n(states, n_queries, kNothing);
    attend_page(call, unit, unit.first_page + i, states, result_out_.data() + result * head_dim_, scratch);
  }
  // Acquires what the other parts released: the last one sees all results, and nobody reads the projected queries any more.
  if (std::atomic_ref(unit.parts_left).fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  fold_pages(call, unit, scratch);
  write_out(call, unit, queries, scratch);
}

void AttentionBlock::fold_pages(const AttentionCall& call, const Unit& unit, Scratch& scratch) const noexcept {
  const std::size_t n_queries = queries_of(unit);
  for (std::size_t query = 0; query < n_queries; ++query) {
    AttentionState& state = scratch.states[query];
    state = {.max = kNoScore, .sum = 0.0f};
    for (std::size_t page = 0; page < unit.n_pages; ++page) {
      const std::size_t result = unit.first_result + page * n_queries + query;
      if (result_states_.data()[result].max == kNoScore) continue;  // no slot of it was visible
      call.compute.kernels.fold_attention(state, scratch.out.data() + query * head_dim_, result_states_.data()[result],
                                          result_out_.data() + result * head_dim_, head_dim_);
    }
  }
}

void AttentionBlock::write_out(const AttentionCall& call, const Unit& unit, View<float, Seq, QueryChannels> queries,
                               Scratch& scratch) const noexcept {
  float* out = scratch.out.data();
  for (std::size_t i = 0; i < queries_of(unit); ++i, out += head_dim_) {
    call.compute.kernels.finish_attention(out, scratch.states[i].sum, head_dim_);
    const std::size_t head = unit.kv_head * group_heads_ + i % group_heads_;
    std::memcpy(queries.row(unit.first_row + i / group_heads_).data() + head * head_dim_, out, head_dim_ * sizeof(float));
  }
}

}  // namespace quench
