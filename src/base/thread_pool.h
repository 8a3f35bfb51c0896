#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace quench {

/// A fork-join pool. `run` hands out the indices 0..count-1 through one atomic counter to the calling thread and the workers, and
/// returns when all are done. Which thread takes which index is open; work items are fixed, so results do not depend on it. A worker
/// that the system has not scheduled by the time the work is done is not waited for. Workers spin briefly between runs, then park: an
/// idle pool uses no CPU.
///
/// The work function must not throw and must not call run on the same pool. One thread calls run at a time.
class ThreadPool {
 public:
  /// `threads` counts the calling thread; at least 1. 0 takes default_thread_count(). Throws Error(kOutOfMemory) when the system does not
  /// give so many.
  explicit ThreadPool(int threads = 0);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  [[nodiscard]] int thread_count() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  /// work(index, worker) for each index in [0, count); worker is in [0, thread_count()), for per-thread scratch.
  template <typename Work>
  void run(std::size_t count, const Work& work) {
    static_assert(std::is_nothrow_invocable_v<const Work&, std::size_t, int>, "pool work must be noexcept");
    run_erased(
        count, [](const void* context, std::size_t index, int worker) noexcept { (*static_cast<const Work*>(context))(index, worker); },
        &work);
  }

 private:
  using Erased = void (*)(const void*, std::size_t, int) noexcept;
  void run_erased(std::size_t count, Erased work, const void* context);
  void stop() noexcept;
  void worker_loop(int worker);
  bool join_run(std::uint64_t& seen) noexcept;
  void take_items(int worker) noexcept;

  std::vector<std::thread> workers_;
  Erased work_ = nullptr;
  const void* context_ = nullptr;
  std::size_t count_ = 0;
  alignas(64) std::atomic<std::size_t> next_{0};
  /// Run number, whether workers may still join it, and how many have: see thread_pool.cpp.
  alignas(64) std::atomic<std::uint64_t> gate_{0};
  alignas(64) std::atomic<int> parked_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace quench
