#include "model/step_cost.h"

#include <algorithm>

#include "quant/format.h"

namespace quench {
namespace {

/// Adds up one pass over the weights: `n` rows after `pos0` positions, of which the last `n_logits` (0 or 1) give logits.
class Pass {
 public:
  Pass(const Model& model, const KvLayout& layout, std::size_t pos0, std::size_t n, std::size_t n_logits) noexcept
      : config_(model.config()), weights_(model.weights()), layout_(layout), pos0_(pos0), n_(n), n_logits_(n_logits) {}

  [[nodiscard]] StepCost cost() noexcept {
    for (std::size_t layer = 0; layer < config_.n_layers; ++layer) {
      const std::size_t live = layer + 1 < config_.n_layers ? n_ : n_logits_;
      const LayerWeights& weights = weights_.layers[layer];
      add(weights.key, n_);
      add(weights.value, n_);
      if (live == 0) continue;
      add(weights.query, live);
      add(weights.attention_output, live);
      add_attention(layer, live);
      add_feed_forward(weights, live);
    }
    add(weights_.head(), n_logits_);
    return cost_;
  }

 private:
  /// The product of `rows` rows with a `part` of `parts` equal parts of the matrix.
  template <class In, class Out>
  void add(const Linear<In, Out>& linear, std::size_t rows, std::size_t part = 1, std::size_t parts = 1) noexcept {
    if (linear.empty() || rows == 0) return;
    const PackedMatrix& matrix = linear.matrix();
    cost_.weight_bytes += matrix.size_bytes() / parts * part;
    const std::uint64_t operations = std::uint64_t{2} * matrix.rows() * matrix.columns() / parts * part * rows;
    if (matrix.format() == Format::kBF16) {
      cost_.bf16_operations += operations;
    } else if (format_info(matrix.format()).arithmetic == Arithmetic::kFloat) {
      cost_.f32_operations += operations;
    } else {
      cost_.int8_operations += operations;
    }
  }

  void add_feed_forward(const LayerWeights& weights, std::size_t rows) noexcept {
    const ExpertConfig& experts = config_.experts;
    if (experts.n_experts > 0) {
      add(weights.experts.router, rows);
      add(weights.experts.shared_gate, rows);
      add(weights.experts.gate, rows, experts.n_used, experts.n_experts);
      add(weights.experts.up, rows, experts.n_used, experts.n_experts);
      add(weights.experts.down, rows, experts.n_used, experts.n_experts);
    }
    add(weights.gate, rows);
    add(weights.up, rows);
    add(weights.down, rows);
  }

  void add_attention(std::size_t layer, std::size_t rows) noexcept {
    const std::size_t window = config_.layers[layer].window;
    const auto visible = [&](std::size_t position) { return window == 0 ? position + 1 : std::min(window, position + 1); };
    const std::size_t end = pos0_ + n_;
    std::uint64_t pairs = 0;
    for (std::size_t position = end - rows; position < end; ++position) pairs += visible(position);
    // A product and a sum for each channel of the score, and again for the values.
    (layout_.type == CacheType::kQ8_0 ? cost_.int8_operations : cost_.f32_operations) += 2 * pairs * config_.query_channels();
    cost_.f32_operations += 2 * pairs * config_.query_channels();
    const std::size_t group = layout_.layers[layer].group;
    const std::uint64_t position_bytes = layout_.page_bytes(group) / layout_.groups[group].n_layers / kPagePositions;
    cost_.cache_bytes += position_bytes * (visible(end - rows) + rows - 1);
  }

  const ModelConfig& config_;
  const Weights& weights_;
  const KvLayout& layout_;
  std::size_t pos0_;
  std::size_t n_;
  std::size_t n_logits_;
  StepCost cost_;
};

}  // namespace

StepCost& StepCost::operator+=(const StepCost& other) noexcept {
  weight_bytes += other.weight_bytes;
  cache_bytes += other.cache_bytes;
  int8_operations += other.int8_operations;
  f32_operations += other.f32_operations;
  bf16_operations += other.bf16_operations;
  return *this;
}

StepCost prefill_cost(const Model& model, const KvLayout& layout, std::size_t pos0, std::size_t n, std::size_t chunk) noexcept {
  StepCost cost;
  for (std::size_t done = 0; done < n;) {
    const std::size_t rows = std::min(chunk, n - done);
    cost += Pass(model, layout, pos0 + done, rows, done + rows == n ? 1 : 0).cost();
    done += rows;
  }
  return cost;
}

StepCost decode_cost(const Model& model, const KvLayout& layout, std::size_t pos0, std::size_t n, std::size_t sequences) noexcept {
  StepCost cost;
  for (std::size_t i = 0; i < n; ++i) {
    StepCost step = Pass(model, layout, pos0 + i, 1, 1).cost();
    step.cache_bytes *= sequences;
    step.int8_operations *= sequences;
    step.f32_operations *= sequences;
    step.bf16_operations *= sequences;
    cost += step;
  }
  return cost;
}

}  // namespace quench
