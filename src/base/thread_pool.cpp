#include "base/thread_pool.h"

#include <string>
#include <system_error>

#include "base/cpu.h"
#include "base/error.h"
#include "base/float_control.h"
#include "base/tile_state.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quench {
namespace {

// About 20 us on current processors: longer than the serial gap between two parallel regions of a decode step, short enough that an
// idle pool is parked before anybody measures it.
constexpr int kSpinsBeforeParking = 20000;
// The joining thread yields after this many spins, so that more threads than cores still make progress.
constexpr int kSpinsBeforeYield = 4000;

// gate_: run number in the upper half, then the open bit, then the count of workers inside the run.
constexpr std::uint64_t kOpen = std::uint64_t{1} << 31;
constexpr std::uint64_t kWorkersMask = kOpen - 1;
constexpr std::uint64_t run_number(std::uint64_t gate) noexcept { return gate >> 32; }

void spin_pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int total = threads > 0 ? threads : default_thread_count();
  workers_.reserve(static_cast<std::size_t>(total - 1));
  try {
    for (int worker = 1; worker < total; ++worker) workers_.emplace_back([this, worker] { worker_loop(worker); });
  } catch (const std::system_error& error) {
    stop();
    throw_out_of_memory("cannot start " + std::to_string(total) + " threads: " + error.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run_erased(std::size_t count, Erased work, const void* context) {
  if (count == 0) return;
  if (workers_.empty() || count == 1) {
    for (std::size_t index = 0; index < count; ++index) work(context, index, 0);
    release_tiles();
    return;
  }
  work_ = work;
  context_ = context;
  count_ = count;
  next_.store(0, std::memory_order_relaxed);
  // Sequentially consistent with the load of parked_: a worker either sees the new run before it sleeps, or is counted here.
  gate_.store(((run_number(gate_.load(std::memory_order_relaxed)) + 1) << 32) | kOpen);
  if (parked_.load() > 0) {
    {
      const std::lock_guard lock(mutex_);
    }
    wake_.notify_all();
  }
  take_items(0);
  // Every item is taken. Whoever joined is finishing one; whoever did not may not join any more.
  gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  for (int spins = 0; (gate_.load(std::memory_order_acquire) & kWorkersMask) != 0; ++spins) {
    if (spins < kSpinsBeforeYield) {
      spin_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

/// Enters the current run if it is new and open. `seen` becomes its number either way.
bool ThreadPool::join_run(std::uint64_t& seen) noexcept {
  std::uint64_t gate = gate_.load(std::memory_order_acquire);
  while (run_number(gate) != seen && (gate & kOpen) != 0) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      seen = run_number(gate);
      return true;
    }
  }
  seen = run_number(gate);
  return false;
}

void ThreadPool::take_items(int worker) noexcept {
  for (;;) {
    const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) break;
    work_(context_, index, worker);
  }
  release_tiles();
}

void ThreadPool::worker_loop(int worker) {
  const ScopedFloatControl float_control;
  std::uint64_t seen = 0;
  for (;;) {
    int spins = 0;
    while (run_number(gate_.load(std::memory_order_acquire)) == seen && !stopping_.load(std::memory_order_relaxed)) {
      if (++spins < kSpinsBeforeParking) {
        spin_pause();
        continue;
      }
      std::unique_lock lock(mutex_);
      parked_.fetch_add(1);
      wake_.wait(lock, [&] { return run_number(gate_.load()) != seen || stopping_.load(); });
      parked_.fetch_sub(1);
    }
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!join_run(seen)) continue;
    take_items(worker);
    gate_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace quench
