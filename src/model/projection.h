#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

#include "kernels/linear.h"
#include "tensor/tensor.h"

namespace quench {

/// Weights [Out x In] in packed form: maps rows with axis In to rows with axis Out.
template <class In, class Out>
class Linear {
 public:
  Linear() = default;
  explicit Linear(PackedMatrix matrix) : matrix_(std::move(matrix)) {}

  [[nodiscard]] const PackedMatrix& matrix() const noexcept { return matrix_; }
  [[nodiscard]] PackedMatrix& matrix() noexcept { return matrix_; }
  [[nodiscard]] bool empty() const noexcept { return matrix_.rows() == 0; }

 private:
  PackedMatrix matrix_;
};

/// A product that waits for its activations: weights and where the rows go.
template <class In>
struct Product {
  LinearJob job;
};

/// weights x activations -> out [Seq][Out].
template <class In, class Out, class Given>
[[nodiscard]] Product<In> into(const Linear<In, Out>& weights, View<float, Seq, Given> out) noexcept {
  static_assert(std::same_as<Out, Given>, "product over the wrong axis: the result's axis is not the weights' output axis");
  return {{&weights.matrix(), out.data(), out.stride()}};
}

}  // namespace quench
