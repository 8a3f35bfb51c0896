#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/aligned.h"
#include "base/checked.h"
#include "base/float_control.h"
#include "model/expert_choice.h"
#include "model/forward.h"
#include "model/request_check.h"
#include "model/rope_table.h"

// The plain version of the forward pass: one sequence, all rows of a layer before the next layer, one row at a time, no pages, no chunks.
// It shares with Forward only the kernels and the weights, and stays simple: Forward is tested against it by equality.

namespace quench {
namespace {

using Rows = std::vector<std::vector<float>>;

class Uncached {
 public:
  Uncached(const Model& model, const Compute& compute, std::size_t n_rows, CacheType type)
      : config_(model.config()),
        weights_(model.weights()),
        compute_(compute),
        n_rows_(n_rows),
        cache_(compute.kernels.cache(type)),
        head_bytes_(page_head_bytes(type, config_.head_dim)) {
    const std::size_t pages = ceil_div(n_rows, kPagePositions);
    keys_ = AlignedBuffer(pages * config_.n_kv_heads * head_bytes_, "uncached keys");
    values_ = AlignedBuffer(keys_.size_bytes(), "uncached values");
    for (const RopeConfig& rope : config_.ropes) ropes_.emplace_back(rope, n_rows).fill(0, 0, n_rows);
  }

  [[nodiscard]] Rows embed(std::span<const TokenId> tokens) const {
    Rows x(n_rows_, std::vector<float>(config_.n_embed));
    for (std::size_t row = 0; row < n_rows_; ++row) {
      weights_.embedding.matrix().gather_row(tokens[row], x[row]);
      if (config_.embedding_scale != 1.0f) compute_.kernels.scale(x[row].data(), config_.embedding_scale, config_.n_embed);
    }
    return x;
  }

  void layer(std::size_t index, Rows& x) {
    const LayerWeights& weights = weights_.layers[index];
    Rows queries(n_rows_);
    for (std::size_t row = 0; row < n_rows_; ++row) {
      const std::vector<float> normed = norm(x[row], weights.attention_norm);
      queries[row] = product(weights.query.matrix(), normed, weights.query_bias);
      std::vector<float> key = product(weights.key.matrix(), normed, weights.key_bias);
      const std::vector<float> value = product(weights.value.matrix(), normed, weights.value_bias);
      finish_heads(index, row, weights.query_norm, queries[row]);
      finish_heads(index, row, weights.key_norm, key);
      store(row, key, value);
    }
    for (std::size_t row = 0; row < n_rows_; ++row) {
      const std::vector<float> heads = attend(index, row, queries[row]);
      add(x[row], product(weights.attention_output.matrix(), heads, weights.attention_output_bias), weights.attention_post_norm);
      add(x[row], feed_forward(weights, x[row]), weights.ffn_post_norm);
    }
  }

  [[nodiscard]] std::vector<float> logits(const std::vector<float>& x) const {
    std::vector<float> out = product(weights_.head().matrix(), norm(x, weights_.output_norm), weights_.head_bias);
    if (config_.logit_soft_cap > 0.0f) compute_.kernels.soft_cap(out.data(), config_.logit_soft_cap, out.size());
    return out;
  }

 private:
  [[nodiscard]] std::vector<float> norm(const std::vector<float>& x, const Tensor<float, Embed>& weight) const {
    std::vector<float> out(x.size());
    compute_.kernels.rms_norm(x.data(), weight.data(), x.size(), config_.norm_epsilon, out.data());
    return out;
  }

  template <class Axis>
  [[nodiscard]] std::vector<float> product(const PackedMatrix& matrix, const std::vector<float>& x, const Tensor<float, Axis>& bias) const {
    Activations activations(1, matrix.columns());
    activations.assign(compute_, activation_kind(matrix.format()), x.data(), 1, matrix.columns(), matrix.columns());
    std::vector<float> out(matrix.rows());
    linear(compute_, matrix, activations, out.data(), out.size());
    if (!bias.empty()) compute_.kernels.add(out.data(), bias.data(), out.size());
    return out;
  }

  void finish_heads(std::size_t index, std::size_t row, const Tensor<float, HeadDim>& weight, std::vector<float>& heads) const {
    const RopeTable& rope = ropes_[config_.layers[index].rope];
    for (std::size_t offset = 0; offset < heads.size(); offset += config_.head_dim) {
      float* head = heads.data() + offset;
      if (!weight.empty()) compute_.kernels.rms_norm(head, weight.data(), config_.head_dim, config_.norm_epsilon, head);
      compute_.kernels.rope(head, rope.cos_row(row), rope.sin_row(row), rope.n_rot(), rope.style());
    }
  }

  [[nodiscard]] std::size_t place_of(std::size_t page, std::size_t kv_head) const noexcept {
    return (page * config_.n_kv_heads + kv_head) * head_bytes_;
  }

  void store(std::size_t row, const std::vector<float>& key, const std::vector<float>& value) {
    for (std::size_t head = 0; head < config_.n_kv_heads; ++head) {
      const std::size_t place = place_of(row / kPagePositions, head);
      const std::size_t offset = head * config_.head_dim;
      cache_.store_key(keys_.data() + place, row % kPagePositions, key.data() + offset, config_.head_dim);
      cache_.store_value(values_.data() + place, row % kPagePositions, value.data() + offset, config_.head_dim);
    }
  }

  [[nodiscard]] std::vector<float> attend(std::size_t index, std::size_t row, std::vector<float>& query) const {
    std::vector<float> out(query.size());
    const std::size_t window = config_.layers[index].window;
    const std::size_t oldest = window == 0 || row + 1 <= window ? 0 : row + 1 - window;
    compute_.kernels.scale(query.data(), config_.query_scale, query.size());
    // What a q8_0 cache multiplies with.
    std::vector<std::int16_t> quants(query.size());
    std::vector<float> scales(query.size() / kCacheBlockChannels + 1);
    if (config_.head_dim % kCacheBlockChannels == 0) {
      compute_.kernels.quantize_queries(query.data(), query.size(), quants.data(), scales.data());
    }
    for (std::size_t head = 0; head < config_.n_heads; ++head) {
      const std::size_t offset = head * config_.head_dim;
      AttentionState state{.max = -std::numeric_limits<float>::infinity(), .sum = 0.0f};
      for (std::size_t page = oldest / kPagePositions; page * kPagePositions <= row; ++page) {
        const std::size_t start = page * kPagePositions;
        const int first = static_cast<int>(std::max(oldest, start) - start);
        const int last = static_cast<int>(std::min(row + 1 - start, kPagePositions));
        const std::size_t place = place_of(page, head / config_.heads_per_kv_head());
        cache_.attend_page({.queries = query.data() + offset,
                            .query_stride = config_.head_dim,
                            .n_queries = 1,
                            .head_dim = config_.head_dim,
                            .keys = keys_.data() + place,
                            .values = values_.data() + place,
                            .first = &first,
                            .last = &last,
                            .soft_cap = config_.attention_soft_cap,
                            .states = &state,
                            .out = out.data() + offset,
                            .out_stride = config_.head_dim,
                            .query_quants = quants.data() + offset,
                            .query_scales = scales.data() + offset / kCacheBlockChannels});
      }
      compute_.kernels.finish_attention(out.data() + offset, state.sum, config_.head_dim);
    }
    return out;
  }

  [[nodiscard]] std::vector<float> feed_forward(const LayerWeights& weights, const std::vector<float>& x) const {
    const std::vector<float> normed = norm(x, weights.ffn_norm);
    return config_.experts.n_experts > 0 ? mixture(weights, normed) : dense(weights, normed);
  }

  void activate(std::vector<float>& gate, const std::vector<float>& up) const {
    const auto activation = config_.activation == FfnActivation::kSilu ? compute_.kernels.silu_mul : compute_.kernels.gelu_mul;
    activation(gate.data(), up.data(), gate.size(), gate.data());
  }

  [[nodiscard]] std::vector<float> dense(const LayerWeights& weights, const std::vector<float>& normed) const {
    std::vector<float> gate = product(weights.gate.matrix(), normed, weights.gate_bias);
    activate(gate, product(weights.up.matrix(), normed, weights.up_bias));
    return product(weights.down.matrix(), gate, weights.down_bias);
  }

  [[nodiscard]] std::vector<float> mixture(const LayerWeights& weights, const std::vector<float>& normed) const {
    const ExpertWeights& experts = weights.experts;
    std::vector<float> router = product(experts.router.matrix(), normed, Tensor<float, Experts>());
    std::vector<ExpertChoice> choices(config_.experts.n_used);
    choices.resize(choose_experts(compute_.kernels, config_.experts, router, choices));
    std::vector<float> out(config_.n_embed);
    for (const ExpertChoice& choice : choices) {
      std::vector<float> gate = expert_product(experts.gate.matrix(), choice.expert, config_.experts.n_ffn, normed);
      activate(gate, expert_product(experts.up.matrix(), choice.expert, config_.experts.n_ffn, normed));
      const std::vector<float> output = expert_product(experts.down.matrix(), choice.expert, config_.n_embed, gate);
      compute_.kernels.add_scaled(out.data(), choice.weight, output.data(), out.size());
    }
    if (!experts.shared_gate.empty()) {
      std::vector<float> share = product(experts.shared_gate.matrix(), normed, Tensor<float, SharedGate>());
      compute_.kernels.sigmoid(share.data(), share.size());
      compute_.kernels.add_scaled(out.data(), share.front(), dense(weights, normed).data(), out.size());
    }
    return out;
  }

  [[nodiscard]] std::vector<float> expert_product(const PackedMatrix& stack, std::size_t expert, std::size_t rows,
                                                  const std::vector<float>& x) const {
    Activations activations(1, stack.columns());
    activations.assign(compute_, activation_kind(stack.format()), x.data(), 1, stack.columns(), stack.columns());
    std::vector<float> out(rows);
    LinearJob job{.weights = &stack, .out = out.data(), .out_stride = rows, .first_row = expert * rows, .n_rows = rows};
    linear_jobs(compute_, {&job, 1}, activations);
    return out;
  }

  void add(std::vector<float>& x, std::vector<float> branch, const Tensor<float, Embed>& post_norm) const {
    if (!post_norm.empty()) branch = norm(branch, post_norm);
    compute_.kernels.add(x.data(), branch.data(), x.size());
  }

  const ModelConfig& config_;
  const Weights& weights_;
  const Compute& compute_;
  std::size_t n_rows_;
  const CacheKernels& cache_;
  std::size_t head_bytes_;
  AlignedBuffer keys_;  ///< of the present layer
  AlignedBuffer values_;
  std::vector<RopeTable> ropes_;
};

}  // namespace

void forward_uncached(const Model& model, const Compute& compute, std::span<const TokenId> tokens, const LogitSink& sink, CacheType type) {
  const ScopedFloatControl float_control;
  check_tokens(model.config(), tokens);
  Uncached pass(model, compute, tokens.size(), type);
  Rows x = pass.embed(tokens);
  for (std::size_t layer = 0; layer < model.config().n_layers; ++layer) pass.layer(layer, x);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    const std::vector<float> logits = pass.logits(x[row]);
    check_logits(logits, row);
    sink(row, logits);
  }
}

}  // namespace quench
