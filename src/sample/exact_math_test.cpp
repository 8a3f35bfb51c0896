#include "sample/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace quench {
namespace {

double relative_error(double value, double wanted) { return std::abs(value - wanted) / std::abs(wanted); }

TEST(ExactMath, ExpAgreesWithTheLibraryToAFewUnitsInTheLastPlace) {
  Xoshiro256 random(1);
  for (int i = 0; i < 20000; ++i) {
    const double x = random.uniform() * 100.0 - 64.0;
    ASSERT_LT(relative_error(exact_exp(x), std::exp(x)), 5e-16) << x;
  }
  EXPECT_EQ(exact_exp(0.0), 1.0);
}

TEST(ExactMath, ExpIsZeroFarBelowAndNeverNegative) {
  EXPECT_EQ(exact_exp(-64.1), 0.0);
  EXPECT_EQ(exact_exp(-1e30), 0.0);
  EXPECT_EQ(exact_exp(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_GT(exact_exp(-64.0), 0.0);
}

TEST(ExactMath, LogAgreesWithTheLibraryToAFewUnitsInTheLastPlace) {
  Xoshiro256 random(2);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::exp(random.uniform() * 200.0 - 100.0);
    ASSERT_LT(std::abs(exact_log(x) - std::log(x)), 4e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  EXPECT_EQ(exact_log(1.0), 0.0);
  EXPECT_EQ(exact_log(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(exact_log(-1.0), -std::numeric_limits<double>::infinity());
}

TEST(ExactMath, PowHasItsEdges) {
  EXPECT_EQ(exact_pow(0.0, 0.0), 1.0);
  EXPECT_EQ(exact_pow(0.0, 2.0), 0.0);
  EXPECT_EQ(exact_pow(1.0, 17.0), 1.0);
  EXPECT_NEAR(exact_pow(0.5, 3.0), 0.125, 1e-15);
}

// The bits are part of what a seed means: a change of the polynomial changes everybody's sampled text.
TEST(ExactMath, GoldenBits) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(exact_exp(-1.0)), 0x3FD78B56362CEF38u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(exact_exp(-13.37)), 0x3EBA31AD57BA12F4u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(exact_log(0.05)), 0xC007F7427B73E391u);
}

}  // namespace
}  // namespace quench
