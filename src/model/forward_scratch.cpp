#include "model/forward_scratch.h"

#include <algorithm>

namespace quench {
namespace {

// All-position logits are computed for so many bytes of rows at a time: 85 rows of 49,152, 16 of 262,144.
constexpr std::size_t kLogitBytes = std::size_t{16} << 20;

std::size_t logit_rows(const ModelConfig& config, std::size_t max_rows) {
  return std::clamp<std::size_t>(kLogitBytes / (config.n_vocab * sizeof(float)), 1, max_rows);
}

std::size_t widest(const ModelConfig& config) {
  return std::max({config.n_embed, config.query_channels(), config.n_ffn, ExpertBlock::activation_columns(config)});
}

}  // namespace

ForwardScratch::ForwardScratch(const ModelConfig& config, std::size_t rows, int threads)
    : max_rows(rows),
      residual({rows, config.n_embed}, "scratch"),
      branch({rows, config.n_embed}, "scratch"),
      queries({rows, config.query_channels()}, "scratch"),
      keys({rows, config.kv_channels()}, "scratch"),
      values({rows, config.kv_channels()}, "scratch"),
      gate({rows, config.n_ffn}, "scratch"),
      up({rows, config.n_ffn}, "scratch"),
      logits({logit_rows(config, rows), config.n_vocab}, "scratch"),
      logits_finite(logit_rows(config, rows)),
      activations(rows, widest(config)),
      attention(config, rows, threads),
      experts(config, rows),
      shared_gate({rows, 1}, "scratch") {
  for (const RopeConfig& rope : config.ropes) ropes.emplace_back(rope, rows);
}

ScratchSizes scratch_sizes(const ModelConfig& config, std::size_t threads) noexcept {
  std::uint64_t floats = 2 * config.n_embed + config.query_channels() + 2 * config.kv_channels() + 2 * config.n_ffn;
  for (const RopeConfig& rope : config.ropes) floats += rope.n_rot;
  floats += ExpertBlock::row_floats(config) + 1;
  // One kind of activations: a byte per channel, a scale per 32 and a sum of two bytes per 16.
  const std::uint64_t activation_bytes = widest(config) * 5 / 4;
  return {.row_bytes = floats * sizeof(float) + activation_bytes,
          .fixed_bytes = logit_rows(config, 1) * config.n_vocab * sizeof(float) + threads * AttentionBlock::scratch_bytes(config)};
}

}  // namespace quench
