#pragma once

#include "base/thread_pool.h"
#include "kernels/table.h"

namespace quench {

/// What an operation runs on: the kernels of one instruction set and a pool. Passed down explicitly; nothing is global.
struct Compute {
  const KernelTable& kernels;
  ThreadPool& pool;
};

}  // namespace quench
