#include "kernels/operation_probe.h"

#include <gtest/gtest.h>

#include "base/cpu.h"

namespace quench {
namespace {

TEST(OperationProbe, EveryInstructionSetButTheScalarOneHasARate) {
  ThreadPool pool(2);
  for (const Isa isa : available_isas()) {
    const OperationRates rates = measure_operation_rates({kernels_for(isa), pool});
    EXPECT_EQ(rates.int8_per_second.has_value(), isa != Isa::kScalar) << isa_name(isa);
    EXPECT_EQ(rates.f32_per_second.has_value(), isa != Isa::kScalar) << isa_name(isa);
    EXPECT_GT(rates.int8_per_second.value_or(1), 0.0) << isa_name(isa);
    EXPECT_GT(rates.f32_per_second.value_or(1), 0.0) << isa_name(isa);
  }
}

TEST(OperationProbe, OperationsGrowWithTheRounds) {
  for (const Isa isa : available_isas()) {
    const KernelTable& table = kernels_for(isa);
    if (table.int8_dot_peak == nullptr) continue;
    EXPECT_GT(table.int8_dot_peak(1), 0u);
    EXPECT_EQ(table.int8_dot_peak(6), 6 * table.int8_dot_peak(1)) << isa_name(isa);
    EXPECT_EQ(table.f32_fma_peak(6), 6 * table.f32_fma_peak(1)) << isa_name(isa);
  }
}

}  // namespace
}  // namespace quench
