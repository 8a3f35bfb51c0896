#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "base/float_control.h"

namespace quench {
namespace {

TEST(ThreadPool, EveryIndexRunsExactlyOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const std::size_t count : {0uz, 1uz, 2uz, 7uz, 1000uz}) {
      std::vector<std::atomic<int>> hits(count);
      pool.run(count, [&](std::size_t index, int worker) noexcept {
        if (worker >= 0 && worker < threads) hits[index].fetch_add(1);
      });
      for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1);
    }
  }
}

TEST(ThreadPool, ManyShortRunsInARowLoseNothingWithMoreThreadsThanCores) {
  ThreadPool pool(6);
  std::atomic<std::size_t> total{0};
  for (int run = 0; run < 200; ++run) {
    pool.run(3, [&](std::size_t, int) noexcept { total.fetch_add(1, std::memory_order_relaxed); });
  }
  EXPECT_EQ(total.load(), 600u);
}

// What becomes of the speed is in docs/performance.md; here a worker that never gets a core must not hold a run up for ever.
TEST(ThreadPool, RunsFinishBesideOthersThatNeverRest) {
  std::atomic<bool> stop{false};
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
    others.emplace_back([&stop] {
      while (!stop.load(std::memory_order_relaxed)) {
      }
    });
  }
  ThreadPool pool(4);
  std::atomic<std::size_t> total{0};
  for (int run = 0; run < 300; ++run) {
    pool.run(8, [&](std::size_t, int) noexcept { total.fetch_add(1, std::memory_order_relaxed); });
  }
  stop = true;
  EXPECT_EQ(total.load(), 2400u);
}

TEST(ThreadPool, ResultsWrittenByWorkersAreSeenByTheCaller) {
  ThreadPool pool(3);
  std::vector<std::size_t> out(512);
  for (std::size_t round = 0; round < 200; ++round) {
    pool.run(out.size(), [&](std::size_t index, int) noexcept { out[index] = index + round; });
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i + round);
  }
}

TEST(ThreadPool, AnIdlePoolUsesNoProcessorTime) {
  ThreadPool pool(3);
  pool.run(3, [](std::size_t, int) noexcept {});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // let the workers park
  const auto processor_seconds = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double before = processor_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(processor_seconds() - before, 0.1);  // two spinning workers would use 0.4 s
}

#if defined(__x86_64__)
TEST(ThreadPool, WorkersRunWithTheContractsFloatingPointControl) {
  ThreadPool pool(4);
  std::vector<unsigned> control(64, 0);
  pool.run(control.size(), [&](std::size_t index, int worker) noexcept {
    control[index] = worker == 0 ? 0x1F80u : _mm_getcsr() & ~0x3Fu;  // without the sticky flags
  });
  for (const unsigned word : control) EXPECT_EQ(word, 0x1F80u);
}

TEST(ScopedFloatControl, RestoresTheCallersSetting) {
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(0x9FC0);
  {
    const ScopedFloatControl control;
    EXPECT_EQ(_mm_getcsr(), 0x1F80u);
  }
  EXPECT_EQ(_mm_getcsr(), 0x9FC0u);
  _mm_setcsr(saved);
}
#endif

}  // namespace
}  // namespace quench
