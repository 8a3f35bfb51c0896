#pragma once

#include <cstddef>
#include <span>

#include "kernels/compute.h"
#include "model/forward.h"
#include "model/forward_scratch.h"
#include "model/model.h"

namespace quench {

/// One pass over the weights for rows of one or several sequences. The requests are checked, their positions prepared.
class Step {
 public:
  Step(const Model& model, const Compute& compute, ForwardScratch& scratch, std::span<const SequenceTokens> requests);

  /// Stores keys and values of every row. Afterwards only the wanted rows are left, in the order of the requests.
  void run();
  /// Rows of which logits are wanted.
  [[nodiscard]] std::size_t n_rows() const noexcept { return n_rows_; }
  /// Logits of the wanted rows [begin, begin + n), n at most those that the scratch holds at once.
  [[nodiscard]] View<float, Seq, Vocab> logits(std::size_t begin, std::size_t n);
  /// What the head multiplies for them: the normalised output of the last layer.
  [[nodiscard]] View<const float, Seq, Embed> hidden(std::size_t begin, std::size_t n);

 private:
  void embed();
  void normalize(View<const float, Seq, Embed> x, const Tensor<float, Embed>& weight, View<float, Seq, Embed> out) const;
  void add_branch(const Tensor<float, Embed>& bias, const Tensor<float, Embed>& post_norm, View<float, Seq, Embed> branch);
  void attention(std::size_t layer, bool last_layer);
  void keep_wanted_rows();
  void feed_forward(std::size_t layer);
  void dense(const LayerWeights& weights, View<float, Seq, Embed> branch) const;
  [[nodiscard]] View<float, Seq, Embed> mixture(const LayerWeights& weights, View<float, Seq, Embed> branch) const;

  const Model& model_;
  const ModelConfig& config_;
  const Compute& compute_;
  ForwardScratch& scratch_;
  std::span<const SequenceTokens> requests_;
  std::size_t n_rows_ = 0;
};

}  // namespace quench
