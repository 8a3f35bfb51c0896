#pragma once

#include <algorithm>
#include <cstddef>

#include "base/checked.h"
#include "base/thread_pool.h"

namespace quench {

/// work(row) for each row. One row runs on the caller: a join would cost more than the work.
template <class Work>
void for_each_row(ThreadPool& pool, std::size_t rows, const Work& work) {
  // A row of 576 channels is normalized in about 0.2 us; 16 of them make the atomic counter negligible. With fewer rows every thread has
  // some.
  constexpr std::size_t kMostRowsPerItem = 16;
  const std::size_t rows_per_item = std::clamp<std::size_t>(rows / static_cast<std::size_t>(pool.thread_count()), 1, kMostRowsPerItem);
  if (rows <= 1) {
    for (std::size_t row = 0; row < rows; ++row) work(row);
    return;
  }
  pool.run(ceil_div(rows, rows_per_item), [&](std::size_t item, int) noexcept {
    const std::size_t end = std::min(rows, (item + 1) * rows_per_item);
    for (std::size_t row = item * rows_per_item; row < end; ++row) work(row);
  });
}

}  // namespace quench
