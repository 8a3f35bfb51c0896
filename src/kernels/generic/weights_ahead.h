#pragma once

#include <cstddef>

#include "kernels/table.h"

namespace quench::generic {

/// The packed tiles that follow the ones at work, asked for into L2 little by little: `steps` calls ask for all of them, at the latest.
/// A processor's own prefetch follows one stream while it is read. A tile is read once from memory and then again from the cache for each
/// further group of tokens, during which the memory would rest; and a short tile ends before its stream is seen.
class WeightsAhead {
 public:
  [[gnu::always_inline]] WeightsAhead(const std::byte* tiles, std::size_t bytes, std::size_t steps) noexcept
      : next_(tiles), end_(tiles + bytes), step_bytes_(bytes / steps / kLine * kLine + kLine) {}

  [[gnu::always_inline]] void step() noexcept {
    const std::byte* end = static_cast<std::size_t>(end_ - next_) < step_bytes_ ? end_ : next_ + step_bytes_;
    constexpr int kIntoL2 = 2;
    for (; next_ < end; next_ += kLine) __builtin_prefetch(next_, 0, kIntoL2);
    next_ = end;
  }

 private:
  static constexpr std::size_t kLine = 64;
  const std::byte* next_;
  const std::byte* end_;
  std::size_t step_bytes_;
};

/// For the tiles after a job's.
[[gnu::always_inline]] inline WeightsAhead weights_ahead(const LinearTile& job, std::size_t steps) noexcept {
  const std::size_t bytes = job.n_tiles * job.tile_bytes;
  return {job.tile + bytes, bytes, steps};
}

}  // namespace quench::generic
