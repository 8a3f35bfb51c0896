#include "kernels/linear.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "base/checked.h"

namespace quench {
namespace {

// Of a core's L2; the rest of it is TokenBlocking::activation_bytes.
constexpr std::size_t kItemWeightBytes = 128 << 10;

// Enough items that threads which start late or run slow even out. An item is at least so many weight bytes times tokens: some
// microseconds of work, against 0.1 for claiming it.
constexpr std::size_t kItemsPerThread = 8;
constexpr std::size_t kMinItemWeightBytes = 16 << 10;

std::size_t activation_row_bytes(const Activations& x) noexcept {
  switch (x.kind()) {
    case ActivationKind::kF32: return x.columns() * sizeof(float);
    case ActivationKind::kBF16: return x.columns() * sizeof(BF16);
    case ActivationKind::kBlock32:
    case ActivationKind::kBlock256: break;
  }
  return x.columns() + x.columns() / 4;  // quants, scales and sums
}

/// Tiles and tokens of a job.
struct Extent {
  std::size_t first_tile;
  std::size_t tiles;
  std::size_t tokens;
};
Extent extent_of(const LinearJob& job, const Activations& x) noexcept {
  const std::size_t rows = std::min(job.n_rows, job.weights->rows() - job.first_row);
  return {job.first_row / kTileRows, ceil_div(rows, kTileRows), std::min(job.n_tokens, x.rows() - job.first_token)};
}

/// The last tile of a matrix whose rows are no multiple of 16: through a buffer, so that only real rows are written.
void run_ragged_tile(LinearKernel kernel, std::size_t group, LinearTile tile, std::size_t rows) noexcept {
  alignas(64) std::array<float, kMaxTokenGroup * kTileRows> buffer;
  LinearTile part = tile;
  part.out = buffer.data();
  part.out_stride = kTileRows;
  for (std::size_t t = 0; t < tile.n_tokens; t += group) {
    part.first_token = tile.first_token + t;
    part.n_tokens = std::min(group, tile.n_tokens - t);
    kernel(part);
    for (std::size_t i = 0; i < part.n_tokens; ++i) {
      std::memcpy(tile.out + (t + i) * tile.out_stride, buffer.data() + i * kTileRows, rows * sizeof(float));
    }
  }
}

void run_item(const KernelTable& kernels, const LinearJob& job, const Activations& x, std::size_t first_tile, std::size_t last_tile,
              std::size_t first_token, std::size_t n_tokens) noexcept {
  const PackedMatrix& weights = *job.weights;
  const LinearKernel kernel = kernels.linear_for(weights.format(), n_tokens);
  const std::size_t tiles_at_once = kernels.tiles_for(weights.format(), n_tokens);
  for (std::size_t index = first_tile; index < last_tile;) {
    const std::size_t first_row = index * kTileRows;
    const std::size_t whole_tiles = (weights.rows() - first_row) / kTileRows;
    const std::size_t n_tiles = std::clamp<std::size_t>(std::min(whole_tiles, last_tile - index), 1, tiles_at_once);
    const LinearTile tile{.tile = weights.tile(index),
                          .columns = weights.columns(),
                          .x = &x,
                          .first_token = first_token,
                          .n_tokens = n_tokens,
                          .out = job.out + first_token * job.out_stride + (first_row - job.first_row),
                          .out_stride = job.out_stride,
                          .n_tiles = n_tiles,
                          .tile_bytes = weights.tile_bytes()};
    if (whole_tiles > 0) {
      kernel(tile);
    } else {
      run_ragged_tile(kernel, kernels.blocking.group, tile, weights.rows() - first_row);
    }
    index += n_tiles;
  }
}

/// How the products are cut: each job's tiles into groups, its tokens into blocks. Results do not depend on it.
class Cut {
 public:
  Cut(const Compute& compute, std::span<const LinearJob> jobs, const Activations& x) noexcept : kernels_(compute.kernels), x_(x) {
    const std::size_t fitting = std::max<std::size_t>(1, kernels_.blocking.activation_bytes / activation_row_bytes(x));
    most_tokens_ = round_up(fitting, kernels_.blocking.group);
    const auto threads = static_cast<std::size_t>(compute.pool.thread_count());
    std::size_t work = 0;  // weight bytes times token blocks
    std::size_t most_tokens = 1;
    for (const LinearJob& job : jobs) {
      const Extent extent = extent_of(job, x);
      const std::size_t block = token_block(extent);
      work += extent.tiles * job.weights->tile_bytes() * ceil_div(extent.tokens, block);
      most_tokens = std::max(most_tokens, block);
    }
    item_weight_bytes_ =
        std::clamp(work / (threads * kItemsPerThread), std::max<std::size_t>(1, kMinItemWeightBytes / most_tokens), kItemWeightBytes);
  }

  [[nodiscard]] std::size_t items(const LinearJob& job) const noexcept {
    const Extent extent = extent_of(job, x_);
    return ceil_div(extent.tiles, tiles_per_item(job, extent)) * ceil_div(extent.tokens, token_block(extent));
  }

  /// Item `index` of a job: token blocks vary fastest, so that a thread which takes neighbouring items keeps the weights in its cache.
  void run(const LinearJob& job, std::size_t index) const noexcept {
    const Extent extent = extent_of(job, x_);
    const std::size_t block = token_block(extent);
    const std::size_t token_blocks = ceil_div(extent.tokens, block);
    const std::size_t per_item = tiles_per_item(job, extent);
    const std::size_t first_tile = index / token_blocks * per_item;
    const std::size_t first_token = index % token_blocks * block;
    run_item(kernels_, job, x_, extent.first_tile + first_tile, extent.first_tile + std::min(first_tile + per_item, extent.tiles),
             job.first_token + first_token, std::min(block, extent.tokens - first_token));
  }

 private:
  /// As few blocks as fit the caches, and about as long as each other: a last one of a few tokens would read all weights for them.
  [[nodiscard]] std::size_t token_block(const Extent& extent) const noexcept {
    if (extent.tokens <= most_tokens_) return std::max<std::size_t>(extent.tokens, 1);
    return round_up(ceil_div(extent.tokens, ceil_div(extent.tokens, most_tokens_)), kernels_.blocking.group);
  }
  [[nodiscard]] std::size_t tiles_per_item(const LinearJob& job, const Extent& extent) const noexcept {
    return std::clamp<std::size_t>(item_weight_bytes_ / job.weights->tile_bytes(), 1, extent.tiles);
  }

  const KernelTable& kernels_;
  const Activations& x_;
  std::size_t most_tokens_ = 0;  ///< in a block
  std::size_t item_weight_bytes_ = 0;
};

/// The order in which items are handed out: threads that take turns each walk through a part of the weights of their own, front to back,
/// so that every core's prefetcher sees one long stream instead of pieces with gaps.
class Streams {
 public:
  Streams(std::size_t items, std::size_t threads) noexcept : threads_(threads), length_(items / threads), longer_(items % threads) {}
  [[nodiscard]] std::size_t item(std::size_t index) const noexcept {
    const std::size_t stream = index % threads_;
    return stream * length_ + std::min(stream, longer_) + index / threads_;
  }

 private:
  std::size_t threads_;
  std::size_t length_;
  std::size_t longer_;  ///< the first streams have one item more
};

}  // namespace

void linear(const Compute& compute, const PackedMatrix& weights, const Activations& x, float* out, std::size_t out_stride) {
  LinearJob job{&weights, out, out_stride};
  linear_jobs(compute, {&job, 1}, x);
}

void linear_jobs(const Compute& compute, std::span<LinearJob> jobs, const Activations& x) {
  if (x.rows() == 0 || jobs.empty()) return;
  const Cut cut(compute, jobs, x);
  std::size_t items = 0;
  for (LinearJob& job : jobs) {
    job.first_item = items;
    items += cut.items(job);
  }
  const Streams streams(items, static_cast<std::size_t>(compute.pool.thread_count()));
  compute.pool.run(items, [&](std::size_t index, int) noexcept {
    const std::size_t item = streams.item(index);
    const LinearJob& job = *std::prev(std::ranges::upper_bound(jobs, item, {}, &LinearJob::first_item));
    cut.run(job, item - job.first_item);
  });
}

}  // namespace quench
