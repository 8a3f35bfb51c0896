#include "model/expert_block.h"

#include <algorithm>

#include "base/checked.h"
#include "base/profile.h"
#include "model/row_parallel.h"

namespace quench {
namespace {

/// Expert `expert`'s rows of a stack of matrices, for the slots that lie at [first, first + n).
template <class In, class Out>
LinearJob expert_job(const Linear<In, Axes<Experts, Out>>& stack, std::size_t expert, std::size_t first, std::size_t n,
                     Tensor<float, Seq, Out>& out) noexcept {
  const std::size_t rows = out.template size<Out>();
  return {.weights = &stack.matrix(),
          .out = out.data(),
          .out_stride = rows,
          .first_row = expert * rows,
          .n_rows = rows,
          .first_token = first,
          .n_tokens = n};
}

}  // namespace

ExpertBlock::ExpertBlock(const ModelConfig& config, std::size_t max_rows) : config_(config.experts), activation_(config.activation) {
  if (config_.n_experts == 0) return;
  const std::size_t slots = max_rows * config_.n_used;
  router_ = Tensor<float, Seq, Experts>({max_rows, config_.n_experts}, "expert scratch");
  gate_ = Tensor<float, Seq, ExpertFfn>({slots, config_.n_ffn}, "expert scratch");
  up_ = Tensor<float, Seq, ExpertFfn>({slots, config_.n_ffn}, "expert scratch");
  outputs_ = Tensor<float, Seq, Embed>({slots, config.n_embed}, "expert scratch");
  sums_ = Tensor<float, Seq, Embed>({max_rows, config.n_embed}, "expert scratch");
  choices_.resize(slots);
  n_chosen_.resize(max_rows);
  slots_.resize(slots);
  row_of_.resize(slots);
  starts_.resize(config_.n_experts + 1);
  filled_.resize(config_.n_experts);
  jobs_.reserve(2 * std::min(config_.n_experts, slots));
}

std::size_t ExpertBlock::row_floats(const ModelConfig& config) noexcept {
  const ExpertConfig& experts = config.experts;
  if (experts.n_experts == 0) return 0;
  // A choice and its two slots are as large as four floats.
  return experts.n_experts + experts.n_used * (2 * experts.n_ffn + config.n_embed + 4) + config.n_embed;
}

std::size_t ExpertBlock::activation_columns(const ModelConfig& config) noexcept {
  constexpr std::size_t kRowUnit = 32;
  return config.experts.n_used * round_up(config.experts.n_ffn, kRowUnit);
}

View<float, Seq, Embed> ExpertBlock::run(const Compute& compute, ActivationScratch& activations, const ExpertWeights& weights,
                                         View<const float, Seq, Embed> normed) {
  const ProfileScope scope(compute.profile, "experts");
  choose(compute, activations, weights, normed);
  group(normed.size<Seq>());
  multiply_in(compute, activations, weights, normed);
  const auto activate = activation_ == FfnActivation::kSilu ? compute.kernels.silu_mul : compute.kernels.gelu_mul;
  for_each_row(compute.pool, n_slots_, [&](std::size_t slot) noexcept {
    float* gate = gate_.view().row(slot).data();
    activate(gate, up_.view().row(slot).data(), config_.n_ffn, gate);
  });
  multiply_out(compute, activations, weights);
  const auto out = sums_.first(normed.size<Seq>());
  add_up(compute, out);
  return out;
}

void ExpertBlock::choose(const Compute& compute, ActivationScratch& activations, const ExpertWeights& weights,
                         View<const float, Seq, Embed> normed) {
  const ProfileScope scope(compute.profile, "router");
  const auto logits = router_.first(normed.size<Seq>());
  multiply(compute, activations, normed, into(weights.router, logits));
  for_each_row(compute.pool, normed.size<Seq>(), [&](std::size_t row) noexcept {
    const auto choices = std::span(choices_).subspan(row * config_.n_used, config_.n_used);
    n_chosen_[row] = choose_experts(compute.kernels, config_, logits.row(row).elements(), choices);
  });
}

/// Counting sort of the choices by expert.
void ExpertBlock::group(std::size_t n_rows) {
  std::ranges::fill(starts_, 0u);
  for (std::size_t row = 0; row < n_rows; ++row) {
    for (std::size_t rank = 0; rank < n_chosen_[row]; ++rank) ++starts_[choices_[row * config_.n_used + rank].expert + 1];
  }
  for (std::size_t expert = 0; expert < config_.n_experts; ++expert) starts_[expert + 1] += starts_[expert];
  n_slots_ = starts_.back();
  std::copy_n(starts_.begin(), config_.n_experts, filled_.begin());
  for (std::size_t row = 0; row < n_rows; ++row) {
    for (std::size_t rank = 0; rank < n_chosen_[row]; ++rank) {
      const std::size_t index = row * config_.n_used + rank;
      const std::uint32_t slot = filled_[choices_[index].expert]++;
      slots_[index] = slot;
      row_of_[slot] = static_cast<std::uint32_t>(row);
    }
  }
}

void ExpertBlock::multiply_in(const Compute& compute, ActivationScratch& activations, const ExpertWeights& weights,
                              View<const float, Seq, Embed> normed) {
  const auto selected = std::span<const std::uint32_t>(row_of_).first(n_slots_);
  const auto add_jobs = [&](const Linear<Embed, Axes<Experts, ExpertFfn>>& stack, Tensor<float, Seq, ExpertFfn>& out) {
    for (std::size_t expert = 0; expert < config_.n_experts; ++expert) {
      const std::size_t n = starts_[expert + 1] - starts_[expert];
      if (n > 0) jobs_.push_back(expert_job(stack, expert, starts_[expert], n, out));
    }
  };
  const auto run_jobs = [&] {
    activations.multiply_selected(compute, normed.data(), normed.size<Seq>(), normed.size<Embed>(), normed.stride(), selected, jobs_);
    jobs_.clear();
  };
  jobs_.clear();
  add_jobs(weights.gate, gate_);
  if (activation_kind(weights.gate.matrix().format()) != activation_kind(weights.up.matrix().format())) run_jobs();
  add_jobs(weights.up, up_);
  run_jobs();
}

void ExpertBlock::multiply_out(const Compute& compute, ActivationScratch& activations, const ExpertWeights& weights) {
  jobs_.clear();
  for (std::size_t expert = 0; expert < config_.n_experts; ++expert) {
    const std::size_t n = starts_[expert + 1] - starts_[expert];
    if (n > 0) jobs_.push_back(expert_job(weights.down, expert, starts_[expert], n, outputs_));
  }
  const auto hidden = gate_.first(n_slots_);
  activations.multiply(compute, hidden.data(), n_slots_, config_.n_ffn, hidden.stride(), jobs_);
}

void ExpertBlock::add_up(const Compute& compute, View<float, Seq, Embed> out) const {
  for_each_row(compute.pool, out.size<Seq>(), [&](std::size_t row) noexcept {
    const auto sum = out.row(row).elements();
    std::ranges::fill(sum, 0.0f);
    for (std::size_t rank = 0; rank < n_chosen_[row]; ++rank) {
      const std::size_t index = row * config_.n_used + rank;
      compute.kernels.add_scaled(sum.data(), choices_[index].weight, outputs_.view().row(slots_[index]).data(), sum.size());
    }
  });
}

}  // namespace quench
