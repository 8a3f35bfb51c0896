#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <variant>

#include "base/error.h"
#include "model/family.h"

namespace quench {
namespace {

// Far above every published model, low enough that no product of two sizes overflows and no hostile file makes us allocate much.
constexpr std::uint64_t kMaxLayers = 4096;
constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 30;
constexpr std::size_t kMaxHeadDim = 512;
constexpr std::size_t kHeadDimUnit = 8;
constexpr std::uint64_t kMaxExperts = 4096;
// Experts lie one below the other in tiles of 16 rows.
constexpr std::size_t kExpertRowUnit = 16;

/// The keys of one architecture.
class Keys {
 public:
  Keys(const gguf::Metadata& metadata, std::string architecture) : metadata_(metadata), architecture_(std::move(architecture)) {}

  [[nodiscard]] std::string full(std::string_view key) const { return architecture_ + "." + std::string(key); }
  [[nodiscard]] const gguf::Value* find(std::string_view key) const { return metadata_.find(full(key)); }

  /// Absent: nothing; present: 1 to `limit`.
  [[nodiscard]] std::optional<std::size_t> optional_size(std::string_view key, std::uint64_t limit) const {
    const auto value = metadata_.unsigned_at(full(key));
    if (!value) return std::nullopt;
    if (*value == 0) throw_bad_file("config: " + full(key) + " is 0");
    if (*value > limit) throw_bad_file("config: " + full(key) + " is " + std::to_string(*value) + ", at most " + std::to_string(limit));
    return static_cast<std::size_t>(*value);
  }
  [[nodiscard]] std::size_t size(std::string_view key, std::uint64_t limit) const {
    const auto value = optional_size(key, limit);
    if (!value) throw_bad_file("config: " + full(key) + " is missing");
    return *value;
  }
  /// Zero where the key is absent.
  [[nodiscard]] std::uint64_t count(std::string_view key) const { return metadata_.unsigned_at(full(key)).value_or(0); }

  [[nodiscard]] std::optional<double> optional_number(std::string_view key) const {
    const auto value = metadata_.number_at(full(key));
    if (value && !std::isfinite(*value)) throw_bad_file("config: " + full(key) + " is not finite");
    return value;
  }
  /// Absent: `otherwise`; present: above 0.
  [[nodiscard]] double positive(std::string_view key, double otherwise) const {
    const double value = optional_number(key).value_or(otherwise);
    if (value <= 0.0) throw_bad_file("config: " + full(key) + " is " + std::to_string(value) + ", must be above 0");
    return value;
  }
  /// Absent: 0; present: 0 or above.
  [[nodiscard]] double not_negative(std::string_view key) const {
    const double value = optional_number(key).value_or(0.0);
    if (value < 0.0) throw_bad_file("config: " + full(key) + " is " + std::to_string(value) + ", must not be negative");
    return value;
  }
  [[nodiscard]] const std::string* text(std::string_view key) const { return metadata_.string_at(full(key)); }
  [[nodiscard]] std::optional<bool> flag(std::string_view key) const { return metadata_.bool_at(full(key)); }

 private:
  const gguf::Metadata& metadata_;
  std::string architecture_;
};

const Family& require_family(const gguf::Metadata& metadata) {
  const std::string* name = metadata.string_at("general.architecture");
  if (name == nullptr) throw_bad_file("config: general.architecture is missing");
  const Family* family = find_family(*name);
  if (family == nullptr) throw_unsupported("config: architecture '" + *name + "' is not supported; quench runs " + family_names());
  return *family;
}

bool is_one_of(double value, std::initializer_list<double> values) { return std::ranges::find(values, value) != values.end(); }

/// A key whose presence changes the computation in a way that no family here knows.
void refuse(const Keys& keys, std::string_view key, bool present, std::string_view meaning) {
  if (present) throw_unsupported("config: " + keys.full(key) + ": " + std::string(meaning) + " not supported");
}

void refuse_foreign_features(const Keys& keys, const Family& family) {
  refuse(keys, "expert_count", family.experts == ExpertStyle::kNone && keys.count("expert_count") != 0, "mixture of experts is");
  refuse(keys, "expert_gating_func", keys.count("expert_gating_func") > 1, "this router function is");
  refuse(keys, "expert_weights_scale", !is_one_of(keys.not_negative("expert_weights_scale"), {0.0, 1.0}), "scaled expert weights are");
  refuse(keys, "expert_group_count", keys.count("expert_group_count") > 1, "grouped experts are");
  refuse(keys, "attention.causal", keys.flag("attention.causal") == false, "attention that is not causal is");
  refuse(keys, "pooling_type", keys.count("pooling_type") > 3, "pooling for ranks is");
  refuse(keys, "rope.dimension_sections", keys.find("rope.dimension_sections") != nullptr, "rotation in sections is");
  refuse(keys, "rope.scaling.alpha", keys.not_negative("rope.scaling.alpha") != 0.0, "this rope scaling is");
  refuse(keys, "rope.scaling.yarn_log_multiplier", keys.not_negative("rope.scaling.yarn_log_multiplier") != 0.0, "this rope scaling is");
  refuse(keys, "attention.key_length_mla", keys.find("attention.key_length_mla") != nullptr, "latent attention is");
}

void read_sizes(const Keys& keys, ModelConfig& config) {
  config.n_layers = keys.size("block_count", kMaxLayers);
  config.context_length = keys.size("context_length", kMaxSize);
  config.n_embed = keys.size("embedding_length", kMaxSize);
  if (config.family->experts == ExpertStyle::kNone) config.n_ffn = keys.size("feed_forward_length", kMaxSize);
  config.n_heads = keys.size("attention.head_count", kMaxSize);
  config.n_kv_heads = keys.optional_size("attention.head_count_kv", kMaxSize).value_or(config.n_heads);
  if (config.n_heads % config.n_kv_heads != 0) {
    throw_bad_file("config: " + keys.full("attention.head_count") + " is " + std::to_string(config.n_heads) + ", no multiple of " +
                   keys.full("attention.head_count_kv") + ", which is " + std::to_string(config.n_kv_heads));
  }
}

/// The keys and their defaults are llama.cpp's.
void read_experts(const Keys& keys, ModelConfig& config) {
  if (config.family->experts == ExpertStyle::kNone) return;
  ExpertConfig& experts = config.experts;
  experts.n_experts = keys.size("expert_count", kMaxExperts);
  experts.n_used = keys.size("expert_used_count", kMaxExperts);
  if (experts.n_used > experts.n_experts) {
    throw_bad_file("config: " + keys.full("expert_used_count") + " is " + std::to_string(experts.n_used) + ", more than " +
                   keys.full("expert_count") + ", which is " + std::to_string(experts.n_experts));
  }
  const auto dense = keys.optional_size("feed_forward_length", kMaxSize);
  const auto own = keys.optional_size("expert_feed_forward_length", kMaxSize);
  if (!own && !dense) throw_bad_file("config: " + keys.full("expert_feed_forward_length") + " is missing");
  experts.n_ffn = own ? *own : *dense / experts.n_used;
  if (experts.n_ffn == 0 || experts.n_ffn % kExpertRowUnit != 0) {
    throw_unsupported("config: experts of " + std::to_string(experts.n_ffn) + " channels (" + keys.full("expert_feed_forward_length") +
                      ") are not supported: a multiple of " + std::to_string(kExpertRowUnit));
  }
  if (config.n_embed % kExpertRowUnit != 0) {
    throw_unsupported("config: experts with " + keys.full("embedding_length") + " " + std::to_string(config.n_embed) +
                      " are not supported: a multiple of " + std::to_string(kExpertRowUnit));
  }
  experts.renormalized = config.family->experts == ExpertStyle::kRenormalized;
  if (config.family->experts == ExpertStyle::kShared) {
    const auto shared = keys.optional_size("expert_shared_feed_forward_length", kMaxSize);
    if (!shared && !dense) throw_bad_file("config: " + keys.full("expert_shared_feed_forward_length") + " is missing");
    config.n_ffn = shared ? *shared : *dense;
  }
}

void require_same_length(const Keys& keys, std::string_view key, std::size_t head_dim) {
  const auto length = keys.optional_size(key, kMaxSize);
  if (length && *length != head_dim) {
    throw_unsupported("config: " + keys.full(key) + " is " + std::to_string(*length) + ", keys have " + std::to_string(head_dim) +
                      "; heads of different sizes are not supported");
  }
}

void read_head_dim(const Keys& keys, ModelConfig& config) {
  const auto key_length = keys.optional_size("attention.key_length", kMaxSize);
  if (!key_length && config.n_embed % config.n_heads != 0) {
    throw_bad_file("config: " + keys.full("embedding_length") + " is " + std::to_string(config.n_embed) + ", no multiple of " +
                   keys.full("attention.head_count") + ", which is " + std::to_string(config.n_heads));
  }
  config.head_dim = key_length.value_or(config.n_embed / config.n_heads);
  if (config.head_dim % kHeadDimUnit != 0 || config.head_dim > kMaxHeadDim) {
    throw_unsupported("config: heads of " + std::to_string(config.head_dim) + " channels (" + keys.full("attention.key_length") +
                      " or embedding_length / head_count) are not supported: a multiple of " + std::to_string(kHeadDimUnit) + ", at most " +
                      std::to_string(kMaxHeadDim));
  }
  require_same_length(keys, "attention.value_length", config.head_dim);
  require_same_length(keys, "attention.key_length_swa", config.head_dim);
  require_same_length(keys, "attention.value_length_swa", config.head_dim);
}

void read_scales(const Keys& keys, ModelConfig& config) {
  const auto epsilon = keys.optional_number("attention.layer_norm_rms_epsilon");
  if (!epsilon) throw_bad_file("config: " + keys.full("attention.layer_norm_rms_epsilon") + " is missing");
  config.norm_epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon", 0.0));
  config.attention_soft_cap = static_cast<float>(keys.not_negative("attn_logit_softcapping"));
  const auto pooling = keys.count("pooling_type");
  config.pooling = pooling == 0 ? Pooling::kLast : static_cast<Pooling>(pooling);
  config.logit_soft_cap = static_cast<float>(keys.not_negative("final_logit_softcapping"));

  const Family& family = *config.family;
  const bool by_embed = family.embed_scaled_layers != 0 && config.n_layers == family.embed_scaled_layers;
  const std::size_t scaled_by = by_embed ? config.n_embed / config.n_heads : config.head_dim;
  if (scaled_by == 0) throw_bad_file("config: " + keys.full("embedding_length") + " is below " + keys.full("attention.head_count"));
  config.query_scale = 1.0f / std::sqrt(static_cast<float>(scaled_by));
  config.embedding_scale = family.scaled_embedding ? std::sqrt(static_cast<float>(config.n_embed)) : 1.0f;
}

RopeScaling read_scaling_type(const Keys& keys) {
  const std::string* type = keys.text("rope.scaling.type");
  if (type == nullptr || *type == "linear") return RopeScaling::kLinear;
  if (*type == "none") return RopeScaling::kNone;
  if (*type == "yarn") return RopeScaling::kYarn;
  throw_unsupported("config: " + keys.full("rope.scaling.type") + " is '" + *type +
                    "'; quench does none, linear and yarn (and llama3, by the tensor rope_freqs)");
}

double read_scaling_factor(const Keys& keys) {
  const std::string_view key = keys.find("rope.scaling.factor") != nullptr ? "rope.scaling.factor" : "rope.scale_linear";
  const double factor = keys.not_negative(key);
  return factor == 0.0 ? 1.0 : factor;
}

RopeConfig read_rope(const Keys& keys, const ModelConfig& config) {
  RopeConfig rope;
  rope.style = config.family->rope_style;
  rope.n_rot = keys.optional_size("rope.dimension_count", kMaxSize).value_or(config.head_dim);
  if (rope.n_rot % 2 != 0 || rope.n_rot > config.head_dim) {
    throw_bad_file("config: " + keys.full("rope.dimension_count") + " is " + std::to_string(rope.n_rot) + ", heads have " +
                   std::to_string(config.head_dim) + " channels");
  }
  require_same_length(keys, "rope.dimension_count_swa", rope.n_rot);
  rope.base = keys.positive("rope.freq_base", 10000.0);
  rope.scaling = read_scaling_type(keys);
  if (rope.scaling != RopeScaling::kNone) rope.factor = read_scaling_factor(keys);
  rope.attention_factor = keys.positive("rope.scaling.attn_factor", 1.0);
  if (rope.scaling == RopeScaling::kLinear && rope.factor == 1.0) rope.scaling = RopeScaling::kNone;
  if (rope.scaling == RopeScaling::kYarn) {
    const auto original = keys.optional_size("rope.scaling.original_context_length", kMaxSize);
    rope.original_context = static_cast<double>(original.value_or(config.context_length));
    rope.extrapolation = keys.optional_number("rope.scaling.yarn_ext_factor").value_or(1.0);
    rope.beta_fast = keys.positive("rope.scaling.yarn_beta_fast", 32.0);
    rope.beta_slow = keys.positive("rope.scaling.yarn_beta_slow", 1.0);
    if (rope.base <= 1.0) throw_bad_file("config: " + keys.full("rope.freq_base") + " must be above 1 for yarn");
  }
  return rope;
}

/// True per layer where the window holds: from an array, one period, or the family's period.
std::vector<bool> read_window_pattern(const Keys& keys, const ModelConfig& config) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const gguf::Value* value = keys.find(kKey);
  const auto* array = value == nullptr ? nullptr : std::get_if<gguf::Array>(value);
  std::vector<bool> windowed(config.n_layers, true);
  if (array == nullptr) {
    const std::uint64_t period = value == nullptr ? config.family->window_pattern : keys.count(kKey);
    for (std::size_t layer = 0; layer < config.n_layers; ++layer) windowed[layer] = period == 0 || layer % period < period - 1;
    return windowed;
  }
  const bool enough = std::visit(
      [&]<class Element>(const std::vector<Element>& elements) {
        if constexpr (std::is_same_v<Element, std::string>) {
          return false;
        } else {
          if (elements.size() < config.n_layers) return false;
          for (std::size_t layer = 0; layer < config.n_layers; ++layer) windowed[layer] = elements[layer] != Element{};
          return true;
        }
      },
      *array);
  if (!enough)
    throw_bad_file("config: " + keys.full(kKey) + " must hold one flag for each of " + std::to_string(config.n_layers) + " layers");
  return windowed;
}

void read_layers(const Keys& keys, ModelConfig& config) {
  config.ropes.push_back(read_rope(keys, config));
  config.layers.resize(config.n_layers);
  const std::uint64_t window = keys.count("attention.sliding_window");
  if (window == 0) return;
  const std::vector<bool> windowed = read_window_pattern(keys, config);
  std::size_t local_rope = 0;
  if (config.family->local_rope) {
    RopeConfig local;
    local.style = config.ropes.front().style;
    local.n_rot = config.ropes.front().n_rot;
    local.base = keys.positive("rope.freq_base_swa", 10000.0);
    local_rope = config.ropes.size();
    config.ropes.push_back(local);
  }
  for (std::size_t layer = 0; layer < config.n_layers; ++layer) {
    if (windowed[layer]) config.layers[layer] = {.window = static_cast<std::size_t>(std::min(window, kMaxSize)), .rope = local_rope};
  }
}

}  // namespace

ModelConfig read_config(const gguf::Metadata& metadata) {
  ModelConfig config;
  config.family = &require_family(metadata);
  config.architecture = config.family->name;
  config.activation = config.family->activation;
  config.head_norm = config.family->head_norm == Presence::kRequired;
  config.post_norms = config.family->post_norms == Presence::kRequired;

  const Keys keys(metadata, config.architecture);
  refuse_foreign_features(keys, *config.family);
  read_sizes(keys, config);
  read_experts(keys, config);
  read_head_dim(keys, config);
  read_scales(keys, config);
  read_layers(keys, config);
  return config;
}

void limit_experts(ModelConfig& config, float top_p) {
  if (!(top_p > 0.0f && top_p <= 1.0f)) {
    throw_bad_request("config: an expert top-p of " + std::to_string(top_p) + "; it lies above 0, at most at 1");
  }
  if (top_p < 1.0f && config.experts.n_experts == 0) {
    throw_bad_request("config: an expert top-p is asked for, and the model is dense: it has no experts to choose from");
  }
  config.experts.top_p = top_p;
}

void limit_window(ModelConfig& config, std::size_t window) noexcept {
  if (window == 0) return;
  for (LayerConfig& layer : config.layers) layer.window = layer.window == 0 ? window : std::min(layer.window, window);
}

}  // namespace quench
