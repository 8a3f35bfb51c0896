#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/config.h"
#include "tensor/tensor.h"

namespace quench {

/// Angle per position of each rotated pair, and the factor on cos and sin, in double: linear, YaRN and llama3 scaling are folded in.
struct RopeFrequencies {
  std::vector<double> radians;  ///< [n_rot / 2] per position
  double magnitude = 1.0;
};

[[nodiscard]] RopeFrequencies rope_frequencies(const RopeConfig& rope);

struct Pairs {};  ///< axis: rotated pairs of channels

/// cos and sin for the positions of one step: computed in double, rounded once.
class RopeTable {
 public:
  RopeTable(const RopeConfig& rope, std::size_t max_rows);

  /// Row first_row + i is for position pos0 + i, i < n.
  void fill(std::size_t first_row, std::size_t pos0, std::size_t n);

  [[nodiscard]] std::size_t n_rot() const noexcept { return 2 * frequencies_.radians.size(); }
  [[nodiscard]] RopeStyle style() const noexcept { return style_; }
  [[nodiscard]] const float* cos_row(std::size_t row) const noexcept { return cos_.view().row(row).data(); }
  [[nodiscard]] const float* sin_row(std::size_t row) const noexcept { return sin_.view().row(row).data(); }

 private:
  RopeStyle style_;
  RopeFrequencies frequencies_;
  Tensor<float, Seq, Pairs> cos_;
  Tensor<float, Seq, Pairs> sin_;
};

}  // namespace quench
