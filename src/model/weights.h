#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/aligned.h"
#include "base/thread_pool.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "model/projection.h"
#include "tensor/tensor.h"

namespace quench {

/// Bytes done and bytes in all; called on the loading thread.
using LoadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// The routed experts of a layer; all empty in a dense model. Stacks hold the experts' matrices one below the other.
struct ExpertWeights {
  Linear<Embed, Experts> router;
  Linear<Embed, Axes<Experts, ExpertFfn>> gate;
  Linear<Embed, Axes<Experts, ExpertFfn>> up;
  Linear<ExpertFfn, Axes<Experts, Embed>> down;
  Linear<Embed, SharedGate> shared_gate;
};

/// One layer. Tensors that the family or the file does not have are empty.
struct LayerWeights {
  Tensor<float, Embed> attention_norm;
  Linear<Embed, QueryChannels> query;
  Linear<Embed, KvChannels> key;
  Linear<Embed, KvChannels> value;
  Linear<QueryChannels, Embed> attention_output;
  Tensor<float, QueryChannels> query_bias;
  Tensor<float, KvChannels> key_bias;
  Tensor<float, KvChannels> value_bias;
  Tensor<float, Embed> attention_output_bias;
  Tensor<float, HeadDim> query_norm;
  Tensor<float, HeadDim> key_norm;
  Tensor<float, Embed> attention_post_norm;

  Tensor<float, Embed> ffn_norm;
  ExpertWeights experts;
  Linear<Embed, Ffn> gate;  ///< of the shared expert where there are experts; so are up and down
  Linear<Embed, Ffn> up;
  Linear<Ffn, Embed> down;
  Tensor<float, Ffn> gate_bias;
  Tensor<float, Ffn> up_bias;
  Tensor<float, Embed> down_bias;
  Tensor<float, Embed> ffn_post_norm;
};

/// All weights of a model, each in one copy: a tied head is the embedding itself.
struct Weights {
  AlignedBuffer matrices;            ///< the memory of every matrix below
  Linear<Embed, Vocab> embedding;    ///< gathered by row
  Linear<Embed, Vocab> untied_head;  ///< empty when tied
  Tensor<float, Vocab> head_bias;
  Tensor<float, Embed> output_norm;
  std::vector<LayerWeights> layers;

  [[nodiscard]] const Linear<Embed, Vocab>& head() const noexcept { return untied_head.empty() ? embedding : untied_head; }
  [[nodiscard]] bool tied() const noexcept { return untied_head.empty(); }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept;
};

/// Checks every tensor of the file against the config, in layer order, completes the config with what only tensors tell (n_vocab,
/// llama3's frequency divisors), then streams the file once, packing in parallel. Tensors that no family knows are errors, unless they
/// are on the short list of docs/models.md.
///
/// Throws Error(kBadFile), Error(kUnsupported), Error(kOutOfMemory) or Error(kIo) naming the tensor; of several, the first in layer order.
[[nodiscard]] Weights load_weights(const gguf::Reader& reader, ModelConfig& config, const LoadProgress& progress, ThreadPool& pool);

}  // namespace quench
