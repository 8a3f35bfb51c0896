#include "cli/roofline.h"

#include <algorithm>

#include "kernels/operation_probe.h"

namespace quench::cli {

void Roofline::raise(const Roofline& other) noexcept {
  bytes_per_second = std::max(bytes_per_second, other.bytes_per_second);
  int8_per_second = std::max(int8_per_second, other.int8_per_second);
  f32_per_second = std::max(f32_per_second, other.f32_per_second);
  bf16_per_second = std::max(bf16_per_second, other.bf16_per_second);
}

std::optional<double> read_share(const StepCost& cost, double seconds, const Roofline& roofline) noexcept {
  if (roofline.bytes_per_second <= 0) return std::nullopt;
  return static_cast<double>(cost.bytes()) / seconds / roofline.bytes_per_second;
}

std::optional<double> operation_share(const StepCost& cost, double seconds, const Roofline& roofline) noexcept {
  if (roofline.int8_per_second <= 0 || roofline.f32_per_second <= 0) return std::nullopt;
  const double bf16_rate = roofline.bf16_per_second > 0 ? roofline.bf16_per_second : roofline.f32_per_second;
  const double at_full_rate = static_cast<double>(cost.int8_operations) / roofline.int8_per_second +
                              static_cast<double>(cost.f32_operations) / roofline.f32_per_second +
                              static_cast<double>(cost.bf16_operations) / bf16_rate;
  return at_full_rate / seconds;
}

RooflineProbe::RooflineProbe(std::uint64_t bytes, ThreadPool& pool) : reads_(static_cast<std::size_t>(bytes), pool) {}

void RooflineProbe::restart(const Compute& compute) {
  constexpr int kPasses = 5;
  best_ = {};
  passes_ = 0;
  for (int i = 0; i < kPasses; ++i) (void)pass(compute);
}

Roofline RooflineProbe::pass(const Compute& compute) {
  const OperationRates rates = measure_operation_rates(compute);
  const Roofline measured{.bytes_per_second = reads_.read(compute.pool).bytes_per_second,
                          .int8_per_second = rates.int8_per_second.value_or(0),
                          .f32_per_second = rates.f32_per_second.value_or(0),
                          .bf16_per_second = rates.bf16_per_second.value_or(0)};
  best_.raise(measured);
  ++passes_;
  return measured;
}

}  // namespace quench::cli
