#include "cli/samples.h"

#include <gtest/gtest.h>

namespace quench::cli {
namespace {

Samples of(std::initializer_list<double> values) {
  Samples samples;
  for (const double value : values) samples.add(value);
  return samples;
}

TEST(Samples, TheMedianIsTheMiddleInAnyOrder) {
  EXPECT_EQ(of({7}).median(), 7);
  EXPECT_EQ(of({9, 1, 4}).median(), 4);
  EXPECT_EQ(of({1, 100, 3, 2}).median(), 2.5);
}

TEST(Samples, SpreadIsSmallestLargestAndDeviation) {
  const Samples samples = of({4, 2, 6});
  EXPECT_EQ(samples.min(), 2);
  EXPECT_EQ(samples.max(), 6);
  EXPECT_EQ(samples.mean(), 4);
  EXPECT_NEAR(samples.standard_deviation(), 1.632993, 1e-6);
  EXPECT_EQ(of({5}).standard_deviation(), 0);
}

TEST(Samples, ValuesStayInTheOrderOfTheirMeasurement) { EXPECT_EQ(of({3, 1, 2}).values(), (std::vector<double>{3, 1, 2})); }

}  // namespace
}  // namespace quench::cli
