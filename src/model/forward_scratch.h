#pragma once

#include <cstddef>
#include <vector>

#include "kernels/compute.h"
#include "model/activation_rows.h"
#include "model/attention_block.h"
#include "model/config.h"
#include "model/expert_block.h"
#include "model/rope_table.h"
#include "tensor/tensor.h"

namespace quench {

/// Every buffer of one step, made once for the largest step.
class ForwardScratch {
 public:
  ForwardScratch(const ModelConfig& config, std::size_t max_rows, int threads);

  std::size_t max_rows;
  Tensor<float, Seq, Embed> residual;
  Tensor<float, Seq, Embed> branch;  ///< normalized input of a block, then its output
  Tensor<float, Seq, QueryChannels> queries;
  Tensor<float, Seq, KvChannels> keys;
  Tensor<float, Seq, KvChannels> values;
  Tensor<float, Seq, Ffn> gate;
  Tensor<float, Seq, Ffn> up;
  Tensor<float, Seq, Vocab> logits;         ///< as many rows as are computed at once
  std::vector<std::uint8_t> logits_finite;  ///< of each row of logits: 1 = all of them are finite
  ActivationScratch activations;
  AttentionBlock attention;
  ExpertBlock experts;
  Tensor<float, Seq, SharedGate> shared_gate;
  std::vector<RopeTable> ropes;  ///< by ModelConfig::ropes
  std::vector<StepSpan> spans;   ///< of the step's rows
};

/// Bytes that each row of a step takes, and what a step takes besides.
struct ScratchSizes {
  std::uint64_t row_bytes;
  std::uint64_t fixed_bytes;
};
[[nodiscard]] ScratchSizes scratch_sizes(const ModelConfig& config, std::size_t threads) noexcept;

}  // namespace quench
