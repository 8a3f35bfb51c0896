#include "model/synth.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "gguf/writer.h"
#include "model/synth_geometry.h"
#include "model/synth_recipe.h"
#include "model/synth_vocabulary.h"
#include "quant/format.h"
#include "quant/random_blocks.h"

namespace quench {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

enum class Scaling { kNone, kLinear, kYarn, kLlama3 };

/// A spec with all defaults resolved.
struct Model {
  const SynthFamily* family;
  SynthGeometry geometry;
  FormatRecipe recipe;
  Scaling scaling;
  double rope_factor;
  std::uint64_t context_length;
  bool tied;
  std::uint64_t n_vocab;
  std::uint64_t seed;
};

/// One tensor: where it goes, and how its values are made.
struct Tensor {
  gguf::TensorPlan plan;
  float mean = 0.0f;
  float deviation = 0.0f;
  std::vector<float> values;  ///< given, not random
};

// ------------------------------------------------------------------------------------------------------------------------------ spec

Scaling scaling_named(const SynthSpec& spec, const SynthGeometry& geometry) {
  if (spec.rope_scaling == "default") return geometry.llama3_factor > 0.0 ? Scaling::kLlama3 : Scaling::kNone;
  if (spec.rope_scaling == "none") return Scaling::kNone;
  if (!(spec.rope_factor >= 1.0 && spec.rope_factor <= 1024.0)) throw_bad_request("synth: the rope factor must be between 1 and 1024");
  if (spec.rope_scaling == "linear") return Scaling::kLinear;
  if (spec.rope_scaling == "yarn") return Scaling::kYarn;
  if (spec.rope_scaling != "llama3") {
    throw_bad_request("synth: unknown rope scaling " + spec.rope_scaling + "; there are default, none, linear, yarn, llama3");
  }
  if (spec.family != "llama") throw_bad_request("synth: rope scaling llama3 is for family llama, not " + spec.family);
  return Scaling::kLlama3;
}

Model resolve(const SynthSpec& spec) {
  const SynthGeometry& geometry = synth_geometry(spec.family, spec.size);
  const Scaling scaling = scaling_named(spec, geometry);
  const bool as_published = spec.rope_scaling == "default";
  const double factor = as_published ? geometry.llama3_factor : spec.rope_factor;
  const double stretch = as_published || scaling == Scaling::kNone ? 1.0 : factor;
  const std::uint64_t context =
      spec.context_length.value_or(static_cast<std::uint64_t>(static_cast<double>(geometry.context_length) * stretch));
  if (context == 0 || context > 0x7FFFFFFF) throw_bad_request("synth: a context length of " + std::to_string(context));
  return {&synth_family(spec.family),
          geometry,
          FormatRecipe::named(spec.format),
          scaling,
          factor,
          context,
          !spec.untied.value_or(!geometry.tied),
          0,
          spec.seed};
}

/// Sizes for tests have just the entries they are given; real ones keep their embedding's height.
gguf::Metadata make_vocabulary(const SynthSpec& spec, const SynthGeometry& geometry) {
  const std::uint64_t n_vocab = spec.vocabulary_size.value_or(geometry.n_vocab);
  if (!spec.vocabulary) return generate_vocabulary(spec.family, n_vocab, spec.seed);
  const bool for_tests = geometry.size == "tiny" || geometry.size == "small";
  return copy_vocabulary(*spec.vocabulary, for_tests && !spec.vocabulary_size ? 0 : n_vocab);
}

// -------------------------------------------------------------------------------------------------------------------------- metadata

void put_scaling(gguf::Metadata& keys, const std::string& prefix, const Model& model) {
  if (model.scaling != Scaling::kLinear && model.scaling != Scaling::kYarn) return;
  keys.add(prefix + "rope.scaling.type", std::string(model.scaling == Scaling::kLinear ? "linear" : "yarn"));
  keys.add(prefix + "rope.scaling.factor", static_cast<float>(model.rope_factor));
  if (model.scaling == Scaling::kYarn) {
    keys.add(prefix + "rope.scaling.original_context_length", static_cast<std::uint32_t>(model.geometry.context_length));
  }
}

gguf::Metadata make_metadata(const Model& model, const gguf::Metadata& tokenizer) {
  const SynthGeometry& geometry = model.geometry;
  const std::string prefix = std::string(geometry.family) + ".";
  gguf::Metadata keys;
  const auto put = [&](const char* key, std::uint64_t value) { keys.add(prefix + key, static_cast<std::uint32_t>(value)); };
  keys.add("general.architecture", std::string(geometry.family));
  keys.add("general.type", std::string("model"));
  keys.add("general.name", "Synthetic " + std::string(geometry.family) + " " + std::string(geometry.size) + " " + model.recipe.name() +
                               " (random weights, seed " + std::to_string(model.seed) + ")");
  keys.add("general.size_label", std::string(geometry.size));
  put("block_count", geometry.n_layers);
  put("context_length", model.context_length);
  put("embedding_length", geometry.n_embed);
  if (geometry.n_experts == 0) {
    put("feed_forward_length", geometry.n_ffn);
  } else {
    put("feed_forward_length", geometry.n_expert_ffn * geometry.n_experts_used);
    put("expert_count", geometry.n_experts);
    put("expert_used_count", geometry.n_experts_used);
    put("expert_feed_forward_length", geometry.n_expert_ffn);
    if (geometry.n_ffn != 0) put("expert_shared_feed_forward_length", geometry.n_ffn);
  }
  put("attention.head_count", geometry.n_heads);
  put("attention.head_count_kv", geometry.n_kv_heads);
  keys.add(prefix + "rope.freq_base", geometry.rope_theta);
  keys.add(prefix + "attention.layer_norm_rms_epsilon", model.family->norm_epsilon);
  if (model.family->explicit_heads) {
    put("attention.key_length", geometry.head_dim);
    put("attention.value_length", geometry.head_dim);
  }
  if (geometry.family == "llama") {
    put("vocab_size", model.n_vocab);
    put("rope.dimension_count", geometry.head_dim);
  }
  if (geometry.sliding_window != 0) put("attention.sliding_window", geometry.sliding_window);
  put_scaling(keys, prefix, model);
  for (const gguf::Metadata::Entry& entry : tokenizer.entries()) keys.add(entry.key, entry.value);
  keys.add("general.quantization_version", std::uint32_t{2});
  keys.add("general.file_type", static_cast<std::uint32_t>(model.recipe.file_type()));
  return keys;
}

// --------------------------------------------------------------------------------------------------------------------------- tensors

/// By how much each frequency is divided. Source: Llama 3.1's published rope configuration (low 1, high 4, 8192 positions).
std::vector<float> llama3_frequency_divisors(const Model& model) {
  constexpr double kLow = 1.0;
  constexpr double kHigh = 4.0;
  const double original = std::min(8192.0, static_cast<double>(model.geometry.context_length));
  std::vector<float> divisors;
  for (std::uint64_t i = 0; i < model.geometry.head_dim; i += 2) {
    const double exponent = static_cast<double>(i) / static_cast<double>(model.geometry.head_dim);
    const double wavelength = 2.0 * std::numbers::pi * std::pow(static_cast<double>(model.geometry.rope_theta), exponent);
    const double smooth = std::clamp((original / wavelength - kLow) / (kHigh - kLow), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1.0 / ((1.0 - smooth) / model.rope_factor + smooth)));
  }
  return divisors;
}

/// Deviations keep activations near 1: a matrix of deviation 1/sqrt(columns) passes on the mean square of its normed input, and the
/// last norm spreads the logits by about 3. With a tied head, a token's own embedding in the residual stream favours that token. It is
/// short beside what the layers add, except where the family scales embeddings up: there it starts at 1/2 per channel, and the post
/// norms let the layers add up to 6.
class TensorList {
 public:
  explicit TensorList(const Model& model) : model_(model), embedding_length_(model.family->post_norms ? 0.5f : 1.0f) {
    const SynthGeometry& geometry = model.geometry;
    matrix("token_embd.weight", {TensorRole::kEmbedding, 0}, geometry.n_embed, model.n_vocab);
    if (model.scaling == Scaling::kLlama3) {
      const std::vector<float> divisors = llama3_frequency_divisors(model);
      tensors_.push_back({{"rope_freqs.weight", Format::kF32, {divisors.size()}}, 0.0f, 0.0f, divisors});
    }
    for (std::uint64_t layer = 0; layer < geometry.n_layers; ++layer) add_layer(static_cast<int>(layer));
    const float spread = 3.0f / embedding_length_;
    vector("output_norm.weight", geometry.n_embed, spread, 0.1f * spread);
    if (!model.tied) matrix("output.weight", {TensorRole::kHead, 0}, geometry.n_embed, model.n_vocab);
  }

  [[nodiscard]] std::vector<Tensor> take() && { return std::move(tensors_); }

 private:
  struct Where {
    TensorRole role;
    int layer;
  };

  void add_layer(int layer) {
    const SynthGeometry& geometry = model_.geometry;
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const std::uint64_t q_width = geometry.n_heads * geometry.head_dim;
    const std::uint64_t kv_width = geometry.n_kv_heads * geometry.head_dim;
    vector(prefix + "attn_norm.weight", geometry.n_embed, 1.0f, 0.1f);
    matrix(prefix + "attn_q.weight", {TensorRole::kQuery, layer}, geometry.n_embed, q_width);
    matrix(prefix + "attn_k.weight", {TensorRole::kKey, layer}, geometry.n_embed, kv_width);
    matrix(prefix + "attn_v.weight", {TensorRole::kValue, layer}, geometry.n_embed, kv_width);
    matrix(prefix + "attn_output.weight", {TensorRole::kAttentionOutput, layer}, q_width, geometry.n_embed);
    if (model_.family->biases) add_biases(prefix, q_width, kv_width);
    if (model_.family->head_norms) {
      vector(prefix + "attn_q_norm.weight", geometry.head_dim, 1.4f, 0.14f);
      vector(prefix + "attn_k_norm.weight", geometry.head_dim, 1.4f, 0.14f);
    }
    vector(prefix + "ffn_norm.weight", geometry.n_embed, 1.0f, 0.1f);
    if (geometry.n_experts > 0) add_experts(prefix, layer);
    if (geometry.n_ffn > 0) add_dense(prefix, geometry.n_experts > 0 ? "_shexp.weight" : ".weight", layer);
    if (model_.family->post_norms) {
      const float weight = 6.0f / std::sqrt(2.0f * static_cast<float>(geometry.n_layers));
      vector(prefix + "post_attention_norm.weight", geometry.n_embed, weight, 0.1f * weight);
      vector(prefix + "post_ffw_norm.weight", geometry.n_embed, weight, 0.1f * weight);
    }
  }

  void add_dense(const std::string& prefix, const std::string& suffix, int layer) {
    const SynthGeometry& geometry = model_.geometry;
    matrix(prefix + "ffn_gate" + suffix, {TensorRole::kGate, layer}, geometry.n_embed, geometry.n_ffn);
    matrix(prefix + "ffn_up" + suffix, {TensorRole::kUp, layer}, geometry.n_embed, geometry.n_ffn);
    matrix(prefix + "ffn_down" + suffix, {TensorRole::kDown, layer}, geometry.n_ffn, geometry.n_embed);
  }

  /// Routers stay f32, as llama.cpp writes them; a deviation of 1 for their logits makes some experts busier than others.
  void add_experts(const std::string& prefix, int layer) {
    const SynthGeometry& geometry = model_.geometry;
    const std::uint64_t n = geometry.n_experts;
    const float deviation = 1.0f / std::sqrt(static_cast<float>(geometry.n_embed));
    tensors_.push_back({{prefix + "ffn_gate_inp.weight", Format::kF32, {geometry.n_embed, n}}, 0.0f, deviation, {}});
    matrix(prefix + "ffn_gate_exps.weight", {TensorRole::kGate, layer}, geometry.n_embed, geometry.n_expert_ffn, n);
    matrix(prefix + "ffn_up_exps.weight", {TensorRole::kUp, layer}, geometry.n_embed, geometry.n_expert_ffn, n);
    matrix(prefix + "ffn_down_exps.weight", {TensorRole::kDown, layer}, geometry.n_expert_ffn, geometry.n_embed, n);
    if (geometry.n_ffn > 0) vector(prefix + "ffn_gate_inp_shexp.weight", geometry.n_embed, 0.0f, deviation);
  }

  void add_biases(const std::string& prefix, std::uint64_t q_width, std::uint64_t kv_width) {
    vector(prefix + "attn_q.bias", q_width, 0.0f, 0.5f);
    vector(prefix + "attn_k.bias", kv_width, 0.0f, 0.5f);
    vector(prefix + "attn_v.bias", kv_width, 0.0f, 0.1f);
  }

  /// `depth` matrices one after the other, for experts; 0 = a plain matrix.
  void matrix(const std::string& name, Where where, std::uint64_t columns, std::uint64_t rows, std::uint64_t depth = 0) {
    const TensorPlace place{where.role,
                            where.layer,
                            static_cast<int>(model_.geometry.n_layers),
                            static_cast<int>(model_.geometry.n_heads / model_.geometry.n_kv_heads),
                            model_.tied,
                            columns};
    const bool by_vocabulary = where.role == TensorRole::kEmbedding || where.role == TensorRole::kHead;
    const float deviation = (by_vocabulary ? embedding_length_ : 1.0f) / std::sqrt(static_cast<float>(columns));
    std::vector<std::uint64_t> dims = {columns, rows};
    if (depth > 0) dims.push_back(depth);
    tensors_.push_back({{name, model_.recipe.format_of(place), std::move(dims)}, 0.0f, deviation, {}});
  }

  void vector(const std::string& name, std::uint64_t elements, float mean, float deviation) {
    tensors_.push_back({{name, Format::kF32, {elements}}, mean, deviation, {}});
  }

  const Model& model_;
  float embedding_length_;  ///< root mean square per channel, times sqrt(n_embed)
  std::vector<Tensor> tensors_;
};

// --------------------------------------------------------------------------------------------------------------------------- values

/// Each tensor has a stream of its own, from the seed and its name: what another holds does not matter (FNV-1a, 64 bits).
Xoshiro256 stream_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return Xoshiro256(hash ^ (seed * 0x9E3779B97F4A7C15u));
}

void write_vector(gguf::Writer& writer, const Tensor& tensor, std::uint64_t seed) {
  std::vector<float> values = tensor.values;
  if (values.empty()) {
    Xoshiro256 random = stream_of(seed, tensor.plan.name);
    values.resize(static_cast<std::size_t>(tensor.plan.dims[0]));
    random_blocks(Format::kF32, random, values.size(), tensor.deviation, reinterpret_cast<std::byte*>(values.data()));
    for (float& value : values) value += tensor.mean;
  }
  writer.write(std::as_bytes(std::span(values)));
}

void write_matrix(gguf::Writer& writer, const Tensor& tensor, std::uint64_t seed) {
  const FormatInfo& format = format_info(tensor.plan.format);
  const auto block_bytes = static_cast<std::size_t>(format.block_bytes);
  std::uint64_t left = tensor.plan.dims[0] / static_cast<std::uint64_t>(format.block_elements);
  for (std::size_t i = 1; i < tensor.plan.dims.size(); ++i) left *= tensor.plan.dims[i];
  Xoshiro256 random = stream_of(seed, tensor.plan.name);
  std::vector<std::byte> piece(kPieceBytes / block_bytes * block_bytes);
  while (left > 0) {
    const auto n_blocks = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size() / block_bytes));
    random_blocks(tensor.plan.format, random, n_blocks, tensor.deviation, piece.data());
    writer.write(std::span(piece).first(n_blocks * block_bytes));
    left -= n_blocks;
  }
}

}  // namespace

void write_synthetic_model(const SynthSpec& spec, const std::filesystem::path& path) {
  Model model = resolve(spec);
  const gguf::Metadata tokenizer = make_vocabulary(spec, model.geometry);
  model.n_vocab = vocabulary_size(tokenizer);
  const std::vector<Tensor> tensors = TensorList(model).take();
  std::vector<gguf::TensorPlan> plans;
  plans.reserve(tensors.size());
  for (const Tensor& tensor : tensors) plans.push_back(tensor.plan);
  gguf::Writer writer(path, make_metadata(model, tokenizer), std::move(plans));
  for (const Tensor& tensor : tensors) {
    if (tensor.plan.dims.size() == 1) {
      write_vector(writer, tensor, spec.seed);
    } else {
      write_matrix(writer, tensor, spec.seed);
    }
  }
  writer.finish();
}

std::vector<std::string_view> synth_families() {
  std::vector<std::string_view> names;
  names.reserve(all_synth_families().size());
  for (const SynthFamily& family : all_synth_families()) names.push_back(family.name);
  return names;
}

std::vector<std::string_view> synth_sizes(std::string_view family) {
  (void)synth_family(family);
  std::vector<std::string_view> names;
  for (const SynthGeometry& geometry : all_synth_geometries()) {
    if (geometry.family == family) names.push_back(geometry.size);
  }
  return names;
}

std::vector<std::string> synth_formats() { return FormatRecipe::names(); }

}  // namespace quench
