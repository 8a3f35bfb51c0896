#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quench {

/// What distinguishes a family's files.
struct SynthFamily {
  std::string_view name;  ///< general.architecture
  bool head_norms;        ///< attn_q_norm, attn_k_norm
  bool biases;            ///< attn_q, attn_k, attn_v
  bool post_norms;        ///< post_attention_norm, post_ffw_norm
  bool explicit_heads;    ///< attention.key_length and value_length are written
  float norm_epsilon;
};

/// One size of one family; the real ones as published, tiny and small for tests.
struct SynthGeometry {
  std::string_view family;
  std::string_view size;
  std::uint64_t n_layers;
  std::uint64_t n_embed;
  std::uint64_t n_ffn;
  std::uint64_t n_heads;
  std::uint64_t n_kv_heads;
  std::uint64_t head_dim;
  std::uint64_t context_length;
  float rope_theta;
  std::uint64_t n_vocab;
  bool tied;
  std::uint64_t sliding_window = 0;  ///< 0: none
  double llama3_factor = 0.0;        ///< 0: no scaling by default
  std::uint64_t n_experts = 0;       ///< 0: dense; otherwise n_ffn is the shared expert's, 0 = none
  std::uint64_t n_experts_used = 0;
  std::uint64_t n_expert_ffn = 0;
};

[[nodiscard]] std::span<const SynthFamily> all_synth_families() noexcept;
[[nodiscard]] std::span<const SynthGeometry> all_synth_geometries() noexcept;

/// Throw Error(kBadRequest) with the names that exist.
[[nodiscard]] const SynthFamily& synth_family(std::string_view name);
[[nodiscard]] const SynthGeometry& synth_geometry(std::string_view family, std::string_view size);

}  // namespace quench
