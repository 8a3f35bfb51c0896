#include "base/read_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace quench {
namespace {

// What a thread claims at once: as much as linear layers hand out (kernels/linear.cpp), many pages for the prefetchers to run ahead in.
constexpr std::size_t kItemBytes = std::size_t{128} << 10;
constexpr std::size_t kItemWords = kItemBytes / sizeof(std::uint64_t);

constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15u;

/// Eight independent sums: one cache line an iteration, and no addition waits for the one before.
std::uint64_t sum_of(const std::uint64_t* words) noexcept {
  constexpr std::size_t kLanes = 8;
  std::uint64_t sums[kLanes] = {};
  for (std::size_t i = 0; i < kItemWords; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += words[i + lane];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

}  // namespace

ReadProbe::ReadProbe(std::size_t bytes, ThreadPool& pool) : buffer_(bytes / kItemBytes * kItemBytes, "read probe") {
  const auto words = buffer_.as<std::uint64_t>();
  // No two pages alike: neither the kernel nor a hypervisor may hold them once.
  pool.run(words.size() / kItemWords, [&](std::size_t item, int) noexcept {
    for (std::size_t i = item * kItemWords; i < (item + 1) * kItemWords; ++i) words[i] = i * kFactor;
  });
}

ReadProbe::Pass ReadProbe::read(ThreadPool& pool) const {
  const auto words = buffer_.as<std::uint64_t>();
  std::atomic<std::uint64_t> sum{0};
  const auto start = std::chrono::steady_clock::now();
  pool.run(words.size() / kItemWords,
           [&](std::size_t item, int) noexcept { sum.fetch_add(sum_of(words.data() + item * kItemWords), std::memory_order_relaxed); });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {.bytes_per_second = static_cast<double>(size_bytes()) / seconds.count(), .sum = sum.load()};
}

std::uint64_t ReadProbe::expected_sum() const noexcept {
  const std::uint64_t n = size_bytes() / sizeof(std::uint64_t);
  const std::uint64_t pairs = n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
  return pairs * kFactor;
}

std::size_t read_probe_bytes(std::uint64_t last_level_cache_bytes, std::uint64_t available_bytes) noexcept {
  constexpr std::uint64_t kUsual = std::uint64_t{1} << 30;
  return static_cast<std::size_t>(std::min(std::max(kUsual, 8 * last_level_cache_bytes), available_bytes / 4));
}

}  // namespace quench
