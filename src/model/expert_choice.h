#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/table.h"
#include "model/config.h"

namespace quench {

/// One expert that a token goes through, and the share its output gets.
struct ExpertChoice {
  std::uint32_t expert;
  float weight;
};

/// Softmax over all router logits [n_experts] (in place), then the n_used largest, best first, ties to the lower index; renormalised to
/// the sum 1 where the family does it. With top_p below 1 only the shortest prefix that reaches top_p of the chosen weight is kept, and
/// takes the whole weight. Returns how many of `choices` [n_used] were written.
///
/// Sums go in rank order. The logits are finite.
std::size_t choose_experts(const KernelTable& kernels, const ExpertConfig& config, std::span<float> logits,
                           std::span<ExpertChoice> choices) noexcept;

}  // namespace quench
