#include "model/expert_choice.h"

#include <algorithm>

namespace quench {
namespace {

/// The largest shares, best first: each goes in before the first that is smaller, so that of equals the earlier stays ahead.
void select_largest(std::span<const float> shares, std::span<ExpertChoice> choices) noexcept {
  std::size_t count = 0;
  for (std::size_t expert = 0; expert < shares.size(); ++expert) {
    const float share = shares[expert];
    if (count == choices.size() && !(share > choices.back().weight)) continue;
    std::size_t place = count < choices.size() ? count++ : count - 1;
    for (; place > 0 && share > choices[place - 1].weight; --place) choices[place] = choices[place - 1];
    choices[place] = {static_cast<std::uint32_t>(expert), share};
  }
}

float total_weight(std::span<const ExpertChoice> choices) noexcept {
  float sum = 0.0f;
  for (const ExpertChoice& choice : choices) sum = sum + choice.weight;
  return sum;
}

/// Multiplies and divides: a prefix that holds all the weight stays as it is.
void rescale(std::span<ExpertChoice> choices, float from, float to) noexcept {
  for (ExpertChoice& choice : choices) choice.weight = choice.weight * to / from;
}

std::size_t prefix_reaching(std::span<const ExpertChoice> choices, float wanted) noexcept {
  float sum = 0.0f;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    sum = sum + choices[i].weight;
    if (sum >= wanted) return i + 1;
  }
  return choices.size();
}

}  // namespace

std::size_t choose_experts(const KernelTable& kernels, const ExpertConfig& config, std::span<float> logits,
                           std::span<ExpertChoice> choices) noexcept {
  kernels.softmax(logits.data(), logits.size());
  choices = choices.first(config.n_used);
  select_largest(logits, choices);
  // At least n_used / n_experts: never zero.
  if (config.renormalized) rescale(choices, total_weight(choices), 1.0f);
  if (config.top_p >= 1.0f) return choices.size();
  const float total = total_weight(choices);
  const std::size_t kept = prefix_reaching(choices, config.top_p * total);
  rescale(choices.first(kept), total_weight(choices.first(kept)), total);
  return kept;
}

}  // namespace quench
