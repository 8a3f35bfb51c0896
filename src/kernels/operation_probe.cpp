#include "kernels/operation_probe.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace quench {
namespace {

// About 0.3 ms an item: a thread that starts late or is interrupted leaves the rest of the items to the others.
constexpr std::size_t kRounds = 100'000;
constexpr std::size_t kItemsPerThread = 16;

std::optional<double> rate_of(std::uint64_t (*peak)(std::size_t) noexcept, ThreadPool& pool) {
  if (peak == nullptr) return std::nullopt;
  std::atomic<std::uint64_t> operations{0};
  const auto start = std::chrono::steady_clock::now();
  pool.run(kItemsPerThread * static_cast<std::size_t>(pool.thread_count()),
           [&](std::size_t, int) noexcept { operations.fetch_add(peak(kRounds), std::memory_order_relaxed); });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(operations.load()) / seconds.count();
}

}  // namespace

OperationRates measure_operation_rates(const Compute& compute) {
  return {.int8_per_second = rate_of(compute.kernels.int8_dot_peak, compute.pool),
          .f32_per_second = rate_of(compute.kernels.f32_fma_peak, compute.pool),
          .bf16_per_second = rate_of(compute.kernels.bf16_dot_peak, compute.pool)};
}

}  // namespace quench
