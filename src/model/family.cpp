#include "model/family.h"

#include <array>

namespace quench {
namespace {

constexpr auto kNever = Presence::kNever;
constexpr auto kOptional = Presence::kOptional;
constexpr auto kRequired = Presence::kRequired;

constexpr Family kQwen3{.name = "qwen3",
                        .rope_style = RopeStyle::kHalf,
                        .activation = FfnActivation::kSilu,
                        .experts = ExpertStyle::kNone,
                        .head_norm = kRequired,
                        .post_norms = kNever,
                        .qkv_bias = kOptional,
                        .output_bias = kNever,
                        .ffn_bias = kNever,
                        .head_bias = kNever,
                        .rope_freqs = kNever,
                        .scaled_embedding = false,
                        .window_pattern = 0,
                        .local_rope = false,
                        .embed_scaled_layers = 0};
constexpr Family kQwen2{.name = "qwen2",
                        .rope_style = RopeStyle::kHalf,
                        .activation = FfnActivation::kSilu,
                        .experts = ExpertStyle::kNone,
                        .head_norm = kNever,
                        .post_norms = kNever,
                        .qkv_bias = kOptional,
                        .output_bias = kNever,
                        .ffn_bias = kNever,
                        .head_bias = kOptional,
                        .rope_freqs = kNever,
                        .scaled_embedding = false,
                        .window_pattern = 0,
                        .local_rope = false,
                        .embed_scaled_layers = 0};

/// The same family with experts instead of dense blocks, and no bias of the head.
constexpr Family with_experts(Family dense, std::string_view name, ExpertStyle experts) noexcept {
  dense.name = name;
  dense.experts = experts;
  dense.head_bias = kNever;
  return dense;
}

constexpr std::array kFamilies = {
    kQwen3,
    kQwen2,
    with_experts(kQwen3, "qwen3moe", ExpertStyle::kRenormalized),
    with_experts(kQwen2, "qwen2moe", ExpertStyle::kShared),
    // Converters permute the rows of attn_q and attn_k so that rotated pairs are neighbours.
    Family{.name = "llama",
           .rope_style = RopeStyle::kInterleaved,
           .activation = FfnActivation::kSilu,
           .experts = ExpertStyle::kNone,
           .head_norm = kNever,
           .post_norms = kNever,
           .qkv_bias = kOptional,
           .output_bias = kOptional,
           .ffn_bias = kOptional,
           .head_bias = kNever,
           .rope_freqs = kOptional,
           .scaled_embedding = false,
           .window_pattern = 0,
           .local_rope = false,
           .embed_scaled_layers = 0},
    // Files hold 1 + weight for every norm. The 27B, alone, has 62 layers.
    Family{.name = "gemma3",
           .rope_style = RopeStyle::kHalf,
           .activation = FfnActivation::kGeluTanh,
           .experts = ExpertStyle::kNone,
           .head_norm = kRequired,
           .post_norms = kRequired,
           .qkv_bias = kNever,
           .output_bias = kNever,
           .ffn_bias = kNever,
           .head_bias = kNever,
           .rope_freqs = kNever,
           .scaled_embedding = true,
           .window_pattern = 6,
           .local_rope = true,
           .embed_scaled_layers = 62},
};

}  // namespace

std::span<const Family> all_families() noexcept { return kFamilies; }

const Family* find_family(std::string_view name) noexcept {
  for (const Family& family : kFamilies) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

std::string family_names() {
  std::string names;
  for (const Family& family : kFamilies) {
    if (!names.empty()) names += ", ";
    names += family.name;
  }
  return names;
}

}  // namespace quench
