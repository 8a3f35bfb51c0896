#include "kernels/linear.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"

namespace quench {
namespace {

// An item's weights and its activations share a core's L2 (512 KiB on Zen 3, the smallest in use here), with room left for the results:
// the weights are read once from memory and then once per token block from L2, the activations once per tile from L2.
constexpr std::size_t kItemWeightBytes = 128 << 10;
constexpr std::size_t kItemActivationBytes = 192 << 10;

// Enough items that threads which start late or run slow even out. An item is at least so many weight bytes times tokens: some
// microseconds of work, against 0.1 for claiming it.
constexpr std::size_t kItemsPerThread = 8;
constexpr std::size_t kMinItemWeightBytes = 16 << 10;

// Kernels take tokens in groups of at most this many; a block that is a multiple leaves no remainder inside.
constexpr std::size_t kTokenGroup = 12;

std::size_t activation_row_bytes(const Activations& x) noexcept {
  switch (x.kind()) {
    case ActivationKind::kF32: return x.columns() * sizeof(float);
    case ActivationKind::kBF16: return x.columns() * sizeof(BF16);
    case ActivationKind::kBlock32:
    case ActivationKind::kBlock256: break;
  }
  return x.columns() + x.columns() / 4;  // quants, scales and sums
}

/// How the products are cut: each job's tiles into groups, the tokens into blocks. Results do not depend on it.
struct Cut {
  std::size_t token_block;
  std::size_t token_blocks;
  std::size_t item_weight_bytes;

  std::size_t tiles_per_item(const PackedMatrix& weights) const noexcept {
    return std::clamp<std::size_t>(item_weight_bytes / weights.tile_bytes(), 1, weights.tile_count());
  }
  std::size_t tile_groups(const PackedMatrix& weights) const noexcept { return ceil_div(weights.tile_count(), tiles_per_item(weights)); }
};

Cut cut_jobs(std::span<const LinearJob> jobs, const Activations& x, std::size_t threads) noexcept {
  const std::size_t fitting = std::max<std::size_t>(1, kItemActivationBytes / activation_row_bytes(x));
  const std::size_t token_block = std::min(x.rows(), round_up(fitting, kTokenGroup));
  const std::size_t token_blocks = ceil_div(x.rows(), token_block);
  std::size_t weight_bytes = 0;
  for (const LinearJob& job : jobs) weight_bytes += job.weights->size_bytes();
  const std::size_t even = weight_bytes * token_blocks / (threads * kItemsPerThread);
  return {token_block, token_blocks, std::clamp(even, std::max<std::size_t>(1, kMinItemWeightBytes / token_block), kItemWeightBytes)};
}

/// The last tile of a matrix whose rows are no multiple of 16: through a buffer, so that only real rows are written.
void run_ragged_tile(LinearKernel kernel, LinearTile tile, std::size_t rows) noexcept {
  constexpr std::size_t kTokens = kTokenGroup;
  alignas(64) std::array<float, kTokens * kTileRows> buffer;
  LinearTile part = tile;
  part.out = buffer.data();
  part.out_stride = kTileRows;
  for (std::size_t t = 0; t < tile.n_tokens; t += kTokens) {
    part.first_token = tile.first_token + t;
    part.n_tokens = std::min(kTokens, tile.n_tokens - t);
    kernel(part);
    for (std::size_t i = 0; i < part.n_tokens; ++i) {
      std::memcpy(tile.out + (t + i) * tile.out_stride, buffer.data() + i * kTileRows, rows * sizeof(float));
    }
  }
}

void run_item(LinearKernel kernel, const LinearJob& job, const Activations& x, std::size_t first_tile, std::size_t last_tile,
              std::size_t first_token, std::size_t n_tokens) noexcept {
  const PackedMatrix& weights = *job.weights;
  for (std::size_t index = first_tile; index < last_tile; ++index) {
    const std::size_t first_row = index * kTileRows;
    const LinearTile tile{.tile = weights.tile(index),
                          .columns = weights.columns(),
                          .x = &x,
                          .first_token = first_token,
                          .n_tokens = n_tokens,
                          .out = job.out + first_token * job.out_stride + first_row,
                          .out_stride = job.out_stride};
    const std::size_t rows = weights.rows() - first_row;
    if (rows >= kTileRows) {
      kernel(tile);
    } else {
      run_ragged_tile(kernel, tile, rows);
    }
  }
}

}  // namespace

void linear(const Compute& compute, const PackedMatrix& weights, const Activations& x, float* out, std::size_t out_stride) {
  const LinearJob job{&weights, out, out_stride};
  linear_jobs(compute, {&job, 1}, x);
}

void linear_jobs(const Compute& compute, std::span<const LinearJob> jobs, const Activations& x) {
  if (x.rows() == 0) return;
  const Cut cut = cut_jobs(jobs, x, static_cast<std::size_t>(compute.pool.thread_count()));
  std::size_t groups = 0;
  for (const LinearJob& job : jobs) groups += cut.tile_groups(*job.weights);

  // Token blocks vary fastest: a thread that takes neighbouring items keeps the weights in its cache.
  compute.pool.run(groups * cut.token_blocks, [&](std::size_t item, int) noexcept {
    std::size_t group = item / cut.token_blocks;
    const LinearJob* job = jobs.data();
    while (group >= cut.tile_groups(*job->weights)) group -= cut.tile_groups(*(job++)->weights);
    const std::size_t per_item = cut.tiles_per_item(*job->weights);
    const std::size_t first_tile = group * per_item;
    const std::size_t first_token = item % cut.token_blocks * cut.token_block;
    run_item(compute.kernels.linear[static_cast<std::size_t>(job->weights->format())], *job, x, first_tile,
             std::min(first_tile + per_item, job->weights->tile_count()), first_token, std::min(cut.token_block, x.rows() - first_token));
  });
}

}  // namespace quench
