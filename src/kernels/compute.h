#pragma once

#include "base/thread_pool.h"
#include "kernels/table.h"

namespace quench {

class Profile;

/// What an operation runs on: the kernels of one instruction set and a pool. Passed down explicitly; nothing is global.
struct Compute {
  const KernelTable& kernels;
  ThreadPool& pool;
  Profile* profile = nullptr;  ///< gets the time of each operation where there is one
};

}  // namespace quench
