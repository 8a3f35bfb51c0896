#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "kernels/table.h"
#include "model/config.h"

namespace quench {

/// Whether a family's files carry a tensor.
enum class Presence { kNever, kOptional, kRequired };

/// How a family's feed-forward blocks are made.
enum class ExpertStyle {
  kNone,          ///< dense
  kRenormalized,  ///< routed experts whose weights sum to 1
  kShared         ///< routed experts with their softmax shares, and a shared expert behind a gate
};

/// What sets one model family apart. Keys of the file are `<name>.<key>`, tensor names are those of docs/models.md.
struct Family {
  std::string_view name;  ///< general.architecture
  RopeStyle rope_style;
  FfnActivation activation;
  ExpertStyle experts;
  Presence head_norm;               ///< attn_q_norm, attn_k_norm
  Presence post_norms;              ///< post_attention_norm, post_ffw_norm
  Presence qkv_bias;                ///< attn_q.bias, attn_k.bias, attn_v.bias
  Presence output_bias;             ///< attn_output.bias
  Presence ffn_bias;                ///< ffn_gate.bias, ffn_up.bias, ffn_down.bias
  Presence head_bias;               ///< output.bias
  Presence rope_freqs;              ///< rope_freqs.weight: llama3 scaling
  bool scaled_embedding;            ///< embeddings are multiplied by sqrt(n_embed)
  std::size_t window_pattern;       ///< of so many layers the last one sees everything; 0 = a window holds for all layers
  bool local_rope;                  ///< windowed layers rotate by rope.freq_base_swa, unscaled
  std::size_t embed_scaled_layers;  ///< with this many layers, queries are scaled by 1 / sqrt(n_embed / n_heads); 0 = never
};

[[nodiscard]] std::span<const Family> all_families() noexcept;
/// nullptr for a name that is not in the table.
[[nodiscard]] const Family* find_family(std::string_view name) noexcept;
/// "qwen3, qwen2, qwen3moe, ..."
[[nodiscard]] std::string family_names();

}  // namespace quench
