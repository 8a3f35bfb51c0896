#pragma once

#include <cstddef>
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

/// Where a step's rows stand: row i is position pos0 + i of the sequence, whose slots for these positions are prepared.
struct StepPlace {
  KvSequence* sequence;
  std::size_t layer;
  std::size_t pos0;
};

/// What turns a projected head into a query or key: bias, norm and rotation. Empty tensors do nothing.
struct HeadTransform {
  const LayerWeights* weights;
  const RopeTable* rope;  ///< row i is for position pos0 + i
  float norm_epsilon;
};

/// One thread's queries of one work item.
struct AttentionScratch {
  AttentionScratch(std::size_t max_queries, std::size_t head_dim);
  AlignedArray<float> queries;  ///< [max_queries][head_dim]
  AlignedArray<float> out;      ///< [max_queries][head_dim]
  std::vector<AttentionState> states;
  std::vector<int> first;
  std::vector<int> last;
};

/// Causal attention of a step over the cache.
class AttentionBlock {
 public:
  AttentionBlock(const ModelConfig& config, std::size_t max_rows, int threads);

  /// Finishes keys (bias, norm, rotation) and values (bias) in place and stores all rows in the cache. The sequence's length stays.
  void append(const Compute& compute, const StepPlace& place, const HeadTransform& transform, View<float, Seq, KvChannels> keys,
              View<float, Seq, KvChannels> values) const;

  /// Rows [first_row, n) of `queries` as projected become the heads' outputs, in place. Keys and values of all rows are stored.
  void attend(const Compute& compute, const StepPlace& place, const HeadTransform& transform, const AttentionOptions& options,
              std::size_t first_row, View<float, Seq, QueryChannels> queries);

  /// append and attend for a step of one row as one parallel region: a KV head needs nothing of the others.
  void append_and_attend_one(const Compute& compute, const StepPlace& place, const HeadTransform& transform,
                             const AttentionOptions& options, View<float, Seq, QueryChannels> queries, View<float, Seq, KvChannels> keys,
                             View<float, Seq, KvChannels> values);

 private:
  /// One KV head's queries for a block of rows.
  struct Item {
    std::size_t kv_head;
    std::size_t first_row;
    std::size_t n_rows;
  };
  void append_rows(const Compute& compute, const StepPlace& place, const HeadTransform& transform, const Item& item,
                   View<float, Seq, KvChannels> keys, View<float, Seq, KvChannels> values) const noexcept;
  void attend_rows(const Compute& compute, const StepPlace& place, const HeadTransform& transform, const AttentionOptions& options,
                   const Item& item, View<float, Seq, QueryChannels> queries, AttentionScratch& scratch) const noexcept;
  void load_queries(const Compute& compute, const HeadTransform& transform, const AttentionOptions& options, const Item& item,
                    View<const float, Seq, QueryChannels> queries, AttentionScratch& scratch) const noexcept;
  void walk_pages(const Compute& compute, const StepPlace& place, const AttentionOptions& options, const Item& item,
                  AttentionScratch& scratch) const noexcept;

  std::size_t n_kv_heads_;
  std::size_t group_heads_;  ///< query heads per KV head
  std::size_t head_dim_;
  std::size_t rows_per_item_;
  std::vector<AttentionScratch> scratch_;  ///< by worker
};

}  // namespace quench
