#include "cli/roofline.h"

#include <gtest/gtest.h>

#include "base/cpu.h"

namespace quench::cli {
namespace {

constexpr Roofline kRoofline{.bytes_per_second = 20e9, .int8_per_second = 400e9, .f32_per_second = 100e9};

TEST(Roofline, ReadShareIsOfWeightsAndCacheTogether) {
  const StepCost cost{.weight_bytes = 6'000'000'000, .cache_bytes = 4'000'000'000};
  EXPECT_DOUBLE_EQ(read_share(cost, 1.0, kRoofline).value(), 0.5);
  EXPECT_DOUBLE_EQ(read_share(cost, 0.5, kRoofline).value(), 1.0);
}

TEST(Roofline, OperationShareAddsTheTimesOfBothKinds) {
  const StepCost cost{.int8_operations = 100'000'000'000, .f32_operations = 25'000'000'000};
  EXPECT_DOUBLE_EQ(operation_share(cost, 1.0, kRoofline).value(), 0.5);
}

TEST(Roofline, WhatWasNotMeasuredHasNoShare) {
  const StepCost cost{.weight_bytes = 1, .int8_operations = 1};
  EXPECT_FALSE(read_share(cost, 1.0, {}).has_value());
  EXPECT_FALSE(operation_share(cost, 1.0, {.bytes_per_second = 1}).has_value());
}

TEST(Roofline, RaisingKeepsTheBetterOfEach) {
  Roofline roofline{.bytes_per_second = 1, .int8_per_second = 5, .f32_per_second = 2};
  roofline.raise({.bytes_per_second = 3, .int8_per_second = 4, .f32_per_second = 2});
  EXPECT_EQ(roofline.bytes_per_second, 3);
  EXPECT_EQ(roofline.int8_per_second, 5);
  EXPECT_EQ(roofline.f32_per_second, 2);
}

TEST(RooflineProbe, RestartTakesFivePassesAndEachFurtherPassCanOnlyRaiseTheBest) {
  ThreadPool pool(2);
  const Compute compute{kernels_for(selected_isa()), pool};
  RooflineProbe probe(1 << 20, pool);
  probe.restart(compute);
  EXPECT_EQ(probe.passes(), 5);
  EXPECT_GT(probe.best().bytes_per_second, 0);
  const Roofline measured = probe.pass(compute);
  EXPECT_EQ(probe.passes(), 6);
  EXPECT_GE(probe.best().bytes_per_second, measured.bytes_per_second);
  probe.restart(compute);
  EXPECT_EQ(probe.passes(), 5);
}

}  // namespace
}  // namespace quench::cli
