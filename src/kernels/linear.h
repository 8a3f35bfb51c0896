#pragma once

#include <cstddef>
#include <span>

#include "kernels/activations.h"
#include "kernels/compute.h"
#include "kernels/packed_matrix.h"

namespace quench {

/// The version of docs/numeric-contract.md that this code computes. It changes when any result may change by a bit; saved caches and
/// golden hashes carry it.
inline constexpr int kNumericContractVersion = 1;

/// out[t][r] = sum_k weights[r][k] * x[t][k] for all rows of x, in the order of the numeric contract: the same bits for any number of
/// tokens, threads and any instruction set.
///
/// x    activations of activation_kind(weights.format()), columns = weights.columns()
/// out  [x.rows()][weights.rows()], out_stride apart; only the real rows are written
void linear(const Compute& compute, const PackedMatrix& weights, const Activations& x, float* out, std::size_t out_stride);

/// Several products of the same activations as one parallel region (Q, K and V; gate and up).
struct LinearJob {
  const PackedMatrix* weights;
  float* out;
  std::size_t out_stride;
};
void linear_jobs(const Compute& compute, std::span<const LinearJob> jobs, const Activations& x);

}  // namespace quench
