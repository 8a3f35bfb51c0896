#include "engine/step_times.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace quench {
namespace {

/// A machine that reads its weights in 20 ms and computes a row in 5 ms.
double machine_seconds(const StepShape& shape) { return std::max(0.020, 0.005 * static_cast<double>(shape.rows)) + 1e-8 * shape.attended; }

TEST(StepTimes, KnowsNothingBeforeTheFirstStep) {
  const StepTimes times;
  EXPECT_TRUE(times.empty());
  EXPECT_EQ(times.predict({.rows = 10, .attended = 100.0}), 0.0);
}

TEST(StepTimes, GuessesFromOneStep) {
  StepTimes times;
  times.observe({.rows = 64, .attended = 0.0}, 0.64);
  EXPECT_NEAR(times.predict({.rows = 64, .attended = 0.0}), 0.64, 1e-9);
  EXPECT_NEAR(times.predict({.rows = 512, .attended = 0.0}), 5.12, 1e-9);
  EXPECT_NEAR(times.predict({.rows = 1, .attended = 0.0}), 0.64, 1e-9);
}

TEST(StepTimes, LearnsAMachineUnderNoise) {
  StepTimes times;
  Xoshiro256 random(1);
  const auto shape_of = [&] { return span_shape(random.below(4096), std::size_t{1} << random.below(10)); };
  for (int i = 0; i < 2000; ++i) {
    const StepShape shape = shape_of();
    times.observe(shape, machine_seconds(shape) * (0.9 + 0.2 * random.uniform()));
  }
  for (int i = 0; i < 100; ++i) {
    const StepShape shape = shape_of();
    EXPECT_NEAR(times.predict(shape), machine_seconds(shape), 0.15 * machine_seconds(shape)) << shape.rows << " rows, " << shape.attended;
  }
}

TEST(StepTimes, FollowsAMachineThatChanges) {
  StepTimes times;
  for (int i = 0; i < 100; ++i) times.observe({.rows = 4, .attended = 0.0}, 0.02);
  for (int i = 0; i < 30; ++i) times.observe({.rows = 4, .attended = 0.0}, 0.06);
  EXPECT_NEAR(times.predict({.rows = 4, .attended = 0.0}), 0.06, 0.001);
}

TEST(StepTimes, TakesASizeThatItNeverSawFromItsFirstStep) {
  StepTimes times;
  times.observe({.rows = 34, .attended = 0.0}, 0.0365);
  times.observe({.rows = 5, .attended = 0.0}, 0.0099);
  EXPECT_NEAR(times.predict({.rows = 5, .attended = 0.0}), 0.0099, 1e-6);
  times.observe({.rows = 1, .attended = 0.0}, 0.007);
  EXPECT_NEAR(times.predict({.rows = 1, .attended = 0.0}), 0.007, 1e-6);
  EXPECT_NEAR(times.predict({.rows = 34, .attended = 0.0}), 0.0365, 1e-6);
}

TEST(StepTimes, AMomentThatWasSlowIsForgotten) {
  StepTimes times;
  const auto seconds = [](std::size_t rows) { return 0.006 + 0.001 * static_cast<double>(rows); };
  const auto observe = [&](std::size_t rows, double factor) { times.observe({.rows = rows, .attended = 0.0}, factor * seconds(rows)); };
  observe(64, 1.0);
  for (int i = 0; i < 10; ++i) observe(1, 1.0);
  observe(2, 3.0);
  EXPECT_GT(times.predict({.rows = 2, .attended = 0.0}), 0.02);
  for (int i = 0; i < 100; ++i) observe(1, 1.0);
  EXPECT_NEAR(times.predict({.rows = 2, .attended = 0.0}), seconds(2), 1e-4);
  EXPECT_NEAR(times.predict({.rows = 64, .attended = 0.0}), seconds(64), 1e-4);
}

TEST(StepTimes, IgnoresWhatCannotBe) {
  StepTimes times;
  times.observe({.rows = 0, .attended = 0.0}, 1.0);
  times.observe({.rows = 1, .attended = 0.0}, -1.0);
  EXPECT_TRUE(times.empty());
}

}  // namespace
}  // namespace quench
