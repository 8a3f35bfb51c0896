#include "model/tensor_plan.h"

#include <array>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "model/family.h"
#include "quant/format.h"

namespace quench {
namespace {

// Rotation frequencies that old converters wrote out; they follow from the config.
constexpr std::array<std::string_view, 2> kIgnoredSuffixes = {".attn_rot_embd", ".attention.rotary_emb.inv_freq"};

/// Looks tensors up by name, checks their shapes, and remembers which were asked for.
class TensorPlanner {
 public:
  TensorPlanner(const gguf::Reader& reader, std::vector<TensorTarget>& targets) : reader_(reader), targets_(targets) {}

  /// Weights [rows x columns]; the file's innermost dimension is the columns.
  template <class In, class Out>
  void matrix(Linear<In, Out>& linear, const std::string& name, std::size_t columns, std::size_t rows) {
    const gguf::TensorInfo& tensor = require(name);
    require_shape(tensor, columns, rows);
    linear = Linear<In, Out>(PackedMatrix::unbound(tensor.format, rows, columns, tensor.name.c_str()));
    targets_.push_back({.tensor = &tensor, .matrix = &linear.matrix()});
  }

  /// One matrix per expert, one below the other; the file has them as its third dimension.
  template <class In, class Out>
  void stack(Linear<In, Axes<Experts, Out>>& linear, const std::string& name, std::size_t columns, std::size_t rows, std::size_t experts) {
    const gguf::TensorInfo& tensor = require(name);
    if (tensor.columns() != columns || tensor.dims[1] != rows || tensor.dims[2] != experts || tensor.dims[3] != 1) {
      throw_bad_file("weights: " + tensor.name + " is " + tensor.describe() + ", expected " + std::to_string(columns) + " x " +
                     std::to_string(rows) + " x " + std::to_string(experts));
    }
    linear = Linear<In, Axes<Experts, Out>>(PackedMatrix::unbound(tensor.format, rows * experts, columns, tensor.name.c_str()));
    targets_.push_back({.tensor = &tensor, .matrix = &linear.matrix()});
  }

  /// A vector of `size`, decoded to f32; left empty when absent and not required.
  template <class Axis>
  void vector(Tensor<float, Axis>& vector, const std::string& name, std::size_t size, Presence presence) {
    if (presence == Presence::kNever) return;
    if (presence == Presence::kOptional && reader_.find(name) == nullptr) return;
    vector = Tensor<float, Axis>({size}, name.c_str());
    plain(vector.data(), name, size);
  }

  void plain(float* out, const std::string& name, std::size_t size) {
    const gguf::TensorInfo& tensor = require(name);
    require_shape(tensor, size, 1);
    if (format_info(tensor.format).arithmetic != Arithmetic::kFloat) {
      throw_unsupported("weights: " + tensor.name + " is " + tensor.describe() + "; vectors must be f32, f16 or bf16");
    }
    targets_.push_back({.tensor = &tensor, .vector = out});
  }

  [[nodiscard]] bool has(const std::string& name) const { return reader_.find(name) != nullptr; }

  const gguf::TensorInfo& require(const std::string& name) {
    const gguf::TensorInfo* tensor = reader_.find(name);
    if (tensor == nullptr) throw_bad_file("weights: " + name + " is missing");
    known_.insert(tensor->name);
    return *tensor;
  }

  /// A tensor that we would leave out changes what the model computes: say so instead of computing something else.
  void refuse_unknown(std::string_view family) const {
    for (const gguf::TensorInfo& tensor : reader_.tensors()) {
      if (known_.contains(tensor.name) || ignored(tensor.name)) continue;
      throw_unsupported("weights: " + tensor.name + " is " + tensor.describe() + ", but the family " + std::string(family) +
                        " has no such tensor; the model would not be computed as it was trained");
    }
  }

 private:
  static bool ignored(std::string_view name) {
    for (const std::string_view suffix : kIgnoredSuffixes) {
      if (name.ends_with(suffix) || name.ends_with(std::string(suffix) + ".weight")) return true;
    }
    return false;
  }

  static void require_shape(const gguf::TensorInfo& tensor, std::size_t columns, std::size_t rows) {
    if (tensor.columns() == columns && tensor.rows() == rows && tensor.dims[2] == 1 && tensor.dims[3] == 1) return;
    const std::string expected = rows == 1 ? std::to_string(columns) : std::to_string(columns) + " x " + std::to_string(rows);
    throw_bad_file("weights: " + tensor.name + " is " + tensor.describe() + ", expected " + expected);
  }

  const gguf::Reader& reader_;
  std::vector<TensorTarget>& targets_;
  std::unordered_set<std::string_view> known_;
};

void plan_experts(TensorPlanner& plan, const ModelConfig& config, const std::string& block, ExpertWeights& weights) {
  const ExpertConfig& experts = config.experts;
  const std::size_t embed = config.n_embed;
  plan.matrix(weights.router, block + "ffn_gate_inp.weight", embed, experts.n_experts);
  plan.stack(weights.gate, block + "ffn_gate_exps.weight", embed, experts.n_ffn, experts.n_experts);
  plan.stack(weights.up, block + "ffn_up_exps.weight", embed, experts.n_ffn, experts.n_experts);
  plan.stack(weights.down, block + "ffn_down_exps.weight", experts.n_ffn, embed, experts.n_experts);
  if (config.n_ffn > 0) plan.matrix(weights.shared_gate, block + "ffn_gate_inp_shexp.weight", embed, 1);
}

void plan_layer(TensorPlanner& plan, const ModelConfig& config, std::size_t index, LayerWeights& layer) {
  const Family& family = *config.family;
  const std::size_t embed = config.n_embed;
  const std::size_t query = config.query_channels();
  const std::size_t kv = config.kv_channels();
  const std::string block = "blk." + std::to_string(index) + ".";

  plan.vector(layer.attention_norm, block + "attn_norm.weight", embed, Presence::kRequired);
  plan.matrix(layer.query, block + "attn_q.weight", embed, query);
  plan.matrix(layer.key, block + "attn_k.weight", embed, kv);
  plan.matrix(layer.value, block + "attn_v.weight", embed, kv);
  plan.matrix(layer.attention_output, block + "attn_output.weight", query, embed);
  plan.vector(layer.query_bias, block + "attn_q.bias", query, family.qkv_bias);
  plan.vector(layer.key_bias, block + "attn_k.bias", kv, family.qkv_bias);
  plan.vector(layer.value_bias, block + "attn_v.bias", kv, family.qkv_bias);
  plan.vector(layer.attention_output_bias, block + "attn_output.bias", embed, family.output_bias);
  plan.vector(layer.query_norm, block + "attn_q_norm.weight", config.head_dim, family.head_norm);
  plan.vector(layer.key_norm, block + "attn_k_norm.weight", config.head_dim, family.head_norm);
  plan.vector(layer.attention_post_norm, block + "post_attention_norm.weight", embed, family.post_norms);

  plan.vector(layer.ffn_norm, block + "ffn_norm.weight", embed, Presence::kRequired);
  if (config.experts.n_experts > 0) plan_experts(plan, config, block, layer.experts);
  if (config.n_ffn > 0) {
    const std::string shared = config.experts.n_experts > 0 ? "_shexp.weight" : ".weight";
    plan.matrix(layer.gate, block + "ffn_gate" + shared, embed, config.n_ffn);
    plan.matrix(layer.up, block + "ffn_up" + shared, embed, config.n_ffn);
    plan.matrix(layer.down, block + "ffn_down" + shared, config.n_ffn, embed);
  }
  plan.vector(layer.gate_bias, block + "ffn_gate.bias", config.n_ffn, family.ffn_bias);
  plan.vector(layer.up_bias, block + "ffn_up.bias", config.n_ffn, family.ffn_bias);
  plan.vector(layer.down_bias, block + "ffn_down.bias", embed, family.ffn_bias);
  plan.vector(layer.ffn_post_norm, block + "post_ffw_norm.weight", embed, family.post_norms);
}

/// The vocabulary is as large as the embedding; where the file lists its tokens, both must agree.
std::size_t vocabulary_size(const gguf::Reader& reader, const gguf::TensorInfo& embedding) {
  const std::uint64_t rows = embedding.rows();
  if (rows == 0 || rows > std::uint64_t{1} << 30) throw_bad_file("weights: " + embedding.name + " is " + embedding.describe());
  const auto* tokens = reader.metadata().find("tokenizer.ggml.tokens");
  const auto* array = tokens == nullptr ? nullptr : std::get_if<gguf::Array>(tokens);
  if (array != nullptr && gguf::size_of(*array) != rows) {
    throw_bad_file("weights: " + embedding.name + " is " + embedding.describe() + ", but tokenizer.ggml.tokens lists " +
                   std::to_string(gguf::size_of(*array)) + " tokens");
  }
  return static_cast<std::size_t>(rows);
}

}  // namespace

std::vector<TensorTarget> plan_tensors(const gguf::Reader& reader, ModelConfig& config, Weights& weights) {
  std::vector<TensorTarget> targets;
  TensorPlanner plan(reader, targets);
  const Family& family = *config.family;

  config.n_vocab = vocabulary_size(reader, plan.require("token_embd.weight"));
  plan.matrix(weights.embedding, "token_embd.weight", config.n_embed, config.n_vocab);
  if (family.rope_freqs != Presence::kNever && plan.has("rope_freqs.weight")) {
    auto& divisors = config.ropes.front().frequency_divisors;
    divisors.resize(config.ropes.front().n_rot / 2);
    plan.plain(divisors.data(), "rope_freqs.weight", divisors.size());
  }
  weights.layers.resize(config.n_layers);
  for (std::size_t i = 0; i < config.n_layers; ++i) plan_layer(plan, config, i, weights.layers[i]);
  plan.vector(weights.output_norm, "output_norm.weight", config.n_embed, Presence::kRequired);
  if (plan.has("output.weight")) plan.matrix(weights.untied_head, "output.weight", config.n_embed, config.n_vocab);
  plan.vector(weights.head_bias, "output.bias", config.n_vocab, family.head_bias);
  plan.refuse_unknown(family.name);
  return targets;
}

}  // namespace quench
