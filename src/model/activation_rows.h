#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/linear.h"
#include "model/projection.h"
#include "tensor/tensor.h"

namespace quench {

/// Scratch that holds a step's activations in every form that weights ask for. One object serves all layers.
class ActivationScratch {
 public:
  ActivationScratch(std::size_t max_rows, std::size_t max_columns);

  /// Rows x [n][columns] in the form `kind`; they stay until the next call for that kind.
  [[nodiscard]] Activations& assign(const Compute& compute, ActivationKind kind, const float* x, std::size_t n, std::size_t columns,
                                    std::size_t stride);

  /// Products of the same rows. Jobs whose weights want the same form run as one parallel region.
  void multiply_jobs(const Compute& compute, const float* x, std::size_t n, std::size_t columns, std::size_t stride,
                     std::span<const LinearJob> jobs);

  /// Products of ranges of rows, one parallel region. The weights of all jobs want the same form of activations.
  void multiply(const Compute& compute, const float* x, std::size_t n, std::size_t columns, std::size_t stride, std::span<LinearJob> jobs);
  /// The same for chosen rows: token i of the jobs is row selected[i] of the n rows of x.
  void multiply_selected(const Compute& compute, const float* x, std::size_t n, std::size_t columns, std::size_t stride,
                         std::span<const std::uint32_t> selected, std::span<LinearJob> jobs);

 private:
  static constexpr std::size_t kKinds = 4;
  static constexpr std::size_t kMaxJobs = 8;
  std::array<Activations, kKinds> by_kind_;
};

/// Multiplies x by each of the products' weights: the rows are quantized once for all of them.
template <class Axis, class... Ins>
void multiply(const Compute& compute, ActivationScratch& scratch, View<const float, Seq, Axis> x, const Product<Ins>&... products) {
  static_assert((std::same_as<Axis, Ins> && ...), "product over the wrong axis: the activations' axis is not the weights' input axis");
  const std::array<LinearJob, sizeof...(Ins)> jobs{products.job...};
  scratch.multiply_jobs(compute, x.data(), x.template size<Seq>(), x.template size<Axis>(), x.stride(), jobs);
}

template <class Axis, class... Ins>
void multiply(const Compute& compute, ActivationScratch& scratch, View<float, Seq, Axis> x, const Product<Ins>&... products) {
  multiply(compute, scratch, View<const float, Seq, Axis>(x), products...);
}

}  // namespace quench
