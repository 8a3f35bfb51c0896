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

/// A product, or a part of one: rows [first_row, first_row + n_rows) of the weights with tokens [first_token, first_token + n_tokens).
/// first_row is a multiple of 16, and n_rows one too unless the rows end there.
struct LinearJob {
  static constexpr std::size_t kAll = static_cast<std::size_t>(-1);

  const PackedMatrix* weights;
  float* out;  ///< of the job's first row, and of token 0
  std::size_t out_stride;
  std::size_t first_row = 0;
  std::size_t n_rows = kAll;
  std::size_t first_token = 0;
  std::size_t n_tokens = kAll;
  std::size_t first_item = 0;  ///< set by linear_jobs: where the job's work starts in the region
};
/// Several products of the same activations as one parallel region (Q, K and V; gate and up; the experts of a layer).
void linear_jobs(const Compute& compute, std::span<LinearJob> jobs, const Activations& x);

}  // namespace quench
