#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "kernels/table.h"

namespace quench {

struct Family;

enum class FfnActivation { kSilu, kGeluTanh };

enum class RopeScaling {
  kNone,
  kLinear,  ///< positions divided by the factor
  kYarn     ///< Peng et al. 2023 (arXiv 2309.00071), as llama.cpp reads its keys
};

/// One way of rotating heads; layers refer to it by index.
struct RopeConfig {
  RopeStyle style = RopeStyle::kHalf;
  std::size_t n_rot = 0;  ///< rotated channels of a head, even
  double base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;                      ///< context extension
  double original_context = 0.0;            ///< yarn: positions the model was first trained for
  double attention_factor = 1.0;            ///< multiplies cos and sin
  double extrapolation = 1.0;               ///< yarn: weight of the unscaled high frequencies
  double beta_fast = 32.0;                  ///< yarn: rotations above which a channel is left alone
  double beta_slow = 1.0;                   ///< yarn: rotations below which a channel is fully interpolated
  std::vector<float> frequency_divisors{};  ///< [n_rot / 2], llama3 scaling (tensor rope_freqs); empty = none
};

/// Mixture of experts, the same in every layer; n_experts 0 = dense.
struct ExpertConfig {
  std::size_t n_experts = 0;
  std::size_t n_used = 0;     ///< experts per token
  std::size_t n_ffn = 0;      ///< hidden channels of each, a multiple of 16
  bool renormalized = false;  ///< the chosen experts' weights sum to 1
  float top_p = 1.0f;         ///< below 1, a token drops the chosen experts past this share of their weight: lossy
};

struct LayerConfig {
  std::size_t window = 0;  ///< positions a query sees, itself included; 0 = all
  std::size_t rope = 0;    ///< index into ModelConfig::ropes
};

/// Everything the forward pass asks about a model besides its weights.
/// How the hidden states of a text become its embedding. The numbers are those of the file's pooling_type, 0 being none given.
enum class Pooling {
  kMean = 1,
  kFirst = 2,  ///< "cls"
  kLast = 3
};

struct ModelConfig {
  const Family* family = nullptr;
  std::string architecture;

  std::size_t n_layers = 0;
  std::size_t n_embed = 0;
  std::size_t n_heads = 0;
  std::size_t n_kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t n_ffn = 0;           ///< of the dense block; with experts, of the shared expert: 0 = none
  std::size_t n_vocab = 0;         ///< rows of token_embd
  std::size_t context_length = 0;  ///< positions the file was trained for, scaling included

  float norm_epsilon = 0.0f;
  float query_scale = 0.0f;          ///< multiplies every query
  float embedding_scale = 1.0f;      ///< multiplies every embedding
  float attention_soft_cap = 0.0f;   ///< 0 = none
  float logit_soft_cap = 0.0f;       ///< 0 = none
  Pooling pooling = Pooling::kLast;  ///< what embeddings are made with
  FfnActivation activation = FfnActivation::kSilu;
  bool head_norm = false;   ///< q and k are normalized per head
  bool post_norms = false;  ///< the outputs of attention and of the feed-forward block are normalized before they are added

  ExpertConfig experts;
  std::vector<LayerConfig> layers;
  std::vector<RopeConfig> ropes;

  [[nodiscard]] std::size_t query_channels() const noexcept { return n_heads * head_dim; }
  [[nodiscard]] std::size_t kv_channels() const noexcept { return n_kv_heads * head_dim; }
  [[nodiscard]] std::size_t heads_per_kv_head() const noexcept { return n_heads / n_kv_heads; }
};

/// Reads and checks a model's numbers. Throws Error(kUnsupported) for an architecture or a feature that quench does not run, and
/// Error(kBadFile) for a number that is missing, zero or contradicts another; each names the key.
/// `n_vocab` is left to the weights. docs/models.md lists the keys.
[[nodiscard]] ModelConfig read_config(const gguf::Metadata& metadata);

/// Keeps, of each token's experts, the best ones that together have `top_p` of the weight; 1 = all. Throws Error(kBadRequest) outside
/// (0, 1]. No effect on dense models.
void limit_experts(ModelConfig& config, float top_p);

/// Applies `window` to every layer: one that has a window keeps the smaller.
void limit_window(ModelConfig& config, std::size_t window) noexcept;

}  // namespace quench
