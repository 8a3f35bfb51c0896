#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "kernels/compute.h"
#include "model/kv_sequence.h"
#include "model/rope_table.h"
#include "model/weights.h"
#include "tensor/tensor.h"

namespace quench {

/// How a layer attends.
struct AttentionOptions {
  std::size_t window = 0;    ///< positions a query sees, itself included; 0 = all
  float soft_cap = 0.0f;     ///< 0 = none
  float query_scale = 1.0f;  ///< multiplies every query
};

/// The rows of a step that belong to one sequence: row first_row + i is its position pos0 + i, whose slot is prepared, and row
/// rope_row + i of the rotation tables.
struct StepSpan {
  KvSequence* sequence;
  std::size_t pos0;
  std::size_t first_row;
  std::size_t n_rows;
  std::size_t rope_row;
};

/// What turns a projected head into a query or key: bias, norm and rotation. Empty tensors do nothing.
struct HeadTransform {
  const LayerWeights& weights;
  const RopeTable& rope;
  float norm_epsilon;
};

/// One layer's attention in one step.
struct AttentionCall {
  const Compute& compute;
  std::size_t layer;
  HeadTransform transform;
  AttentionOptions options;
  std::span<const StepSpan> spans;
};

/// Causal attention of a step over the caches of its sequences.
///
/// The unit of work is one KV head's queries for a block of rows. Where these are too few to keep the threads busy (one sequence, few KV
/// heads, many positions) the pages of a unit are shared out too: each page's result is kept, and whoever finishes a unit last folds them
/// in ascending order, so that the bits are those of one thread.
class AttentionBlock {
 public:
  AttentionBlock(const ModelConfig& config, std::size_t max_rows, int threads);

  /// Finishes keys (bias, norm, rotation) and values (bias) in place and stores all rows of the spans in their caches. Lengths stay.
  void append(const AttentionCall& call, View<float, Seq, KvChannels> keys, View<float, Seq, KvChannels> values);

  /// The rows of `queries` as projected become the heads' outputs, in place. Keys and values of all positions are stored. Throws
  /// Error(kOutOfMemory) before any work when the results of shared-out pages find no room.
  void attend(const AttentionCall& call, View<float, Seq, QueryChannels> queries);

  /// append and attend for spans of one row each, as one parallel region: a KV head needs nothing of the others.
  void append_and_attend(const AttentionCall& call, View<float, Seq, QueryChannels> queries, View<float, Seq, KvChannels> keys,
                         View<float, Seq, KvChannels> values);

  /// What one thread's scratch holds, in bytes.
  [[nodiscard]] static std::size_t scratch_bytes(const ModelConfig& config) noexcept;

 private:
  /// One thread's queries of one unit.
  struct Scratch {
    Scratch(std::size_t max_queries, std::size_t head_dim);
    AlignedArray<float> queries;        ///< [max_queries][head_dim]
    AlignedArray<float> out;            ///< [max_queries][head_dim]
    AlignedArray<std::int16_t> quants;  ///< for a q8_0 cache
    AlignedArray<float> scales;
    std::vector<AttentionState> states;
    std::vector<int> first;
    std::vector<int> last;
  };
  /// One KV head's queries for a block of rows of a span, and the pages that they see.
  struct Unit {
    const StepSpan* span;
    std::size_t kv_head;
    std::size_t first_row;  ///< of the step
    std::size_t n_rows;
    std::size_t first_page;
    std::size_t n_pages;
    std::size_t n_parts = 1;       ///< items that share its pages
    std::size_t first_result = 0;  ///< n_parts > 1: results [n_pages][queries] from here on
    std::uint32_t parts_left = 0;  ///< n_parts > 1: counted down by whoever finishes one
  };
  struct Item {
    std::size_t unit;
    std::size_t part;
  };

  void append_rows(const AttentionCall& call, const StepSpan& span, std::size_t kv_head, std::size_t first_row, std::size_t n_rows,
                   View<float, Seq, KvChannels> keys, View<float, Seq, KvChannels> values) const noexcept;
  void plan(const AttentionCall& call, std::size_t rows_per_unit);
  void share_out_pages(std::size_t threads);
  void attend_item(const AttentionCall& call, const Item& item, View<float, Seq, QueryChannels> queries, Scratch& scratch) noexcept;
  void load_queries(const AttentionCall& call, const Unit& unit, View<const float, Seq, QueryChannels> queries,
                    Scratch& scratch) const noexcept;
  void attend_page(const AttentionCall& call, const Unit& unit, std::size_t page, AttentionState* states, float* out,
                   Scratch& scratch) const noexcept;
  void fold_pages(const AttentionCall& call, const Unit& unit, Scratch& scratch) const noexcept;
  void write_out(const AttentionCall& call, const Unit& unit, View<float, Seq, QueryChannels> queries, Scratch& scratch) const noexcept;
  [[nodiscard]] std::size_t queries_of(const Unit& unit) const noexcept { return unit.n_rows * group_heads_; }

  std::size_t n_kv_heads_;
  std::size_t group_heads_;  ///< query heads per KV head
  std::size_t head_dim_;
  std::size_t rows_per_unit_;
  std::vector<Scratch> scratch_;  ///< by worker
  std::vector<Unit> units_;
  std::vector<Item> items_;
  // Results of shared-out pages: grown to what a step needs.
  AlignedArray<AttentionState> result_states_;
  AlignedArray<float> result_out_;  ///< [results][head_dim]
};

}  // namespace quench
