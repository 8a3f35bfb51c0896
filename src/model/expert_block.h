#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/compute.h"
#include "model/activation_rows.h"
#include "model/config.h"
#include "model/expert_choice.h"
#include "model/weights.h"
#include "tensor/tensor.h"

namespace quench {

/// The routed experts of a layer. Tokens are grouped by expert, so that each chosen expert's weights are read once a step: one parallel
/// region for all gate and up products, one for all down products, whether the step has one token or hundreds. Each token then adds the
/// outputs of its experts in rank order, from +0: out = fma(weight, expert, out).
class ExpertBlock {
 public:
  /// Empty for a dense model. Throws Error(kOutOfMemory).
  ExpertBlock(const ModelConfig& config, std::size_t max_rows);

  /// Floats and activation columns that each row of a step takes.
  [[nodiscard]] static std::size_t row_floats(const ModelConfig& config) noexcept;
  [[nodiscard]] static std::size_t activation_columns(const ModelConfig& config) noexcept;

  /// normed [n][Embed] -> the weighted sum of each row's experts, valid until the next call.
  [[nodiscard]] View<float, Seq, Embed> run(const Compute& compute, ActivationScratch& activations, const ExpertWeights& weights,
                                            View<const float, Seq, Embed> normed);

 private:
  void choose(const Compute& compute, ActivationScratch& activations, const ExpertWeights& weights, View<const float, Seq, Embed> normed);
  void group(std::size_t n_rows);
  void multiply_in(const Compute& compute, ActivationScratch& activations, const ExpertWeights& weights,
                   View<const float, Seq, Embed> normed);
  void multiply_out(const Compute& compute, ActivationScratch& activations, const ExpertWeights& weights);
  void add_up(const Compute& compute, View<float, Seq, Embed> out) const;

  ExpertConfig config_;
  FfnActivation activation_ = FfnActivation::kSilu;
  Tensor<float, Seq, Experts> router_;
  /// A slot is one token at one expert; the slots of an expert lie side by side, tokens ascending.
  Tensor<float, Seq, ExpertFfn> gate_;  ///< by slot
  Tensor<float, Seq, ExpertFfn> up_;    ///< by slot
  Tensor<float, Seq, Embed> outputs_;   ///< by slot
  Tensor<float, Seq, Embed> sums_;      ///< by row
  std::vector<ExpertChoice> choices_;   ///< [row][n_used]
  std::vector<std::size_t> n_chosen_;   ///< by row
  std::vector<std::uint32_t> slots_;    ///< [row][n_used]
  std::vector<std::uint32_t> row_of_;   ///< by slot
  std::vector<std::uint32_t> starts_;   ///< by expert: its first slot; one more at the end
  std::vector<std::uint32_t> filled_;   ///< by expert, while grouping
  std::vector<LinearJob> jobs_;
  std::size_t n_slots_ = 0;
};

}  // namespace quench
