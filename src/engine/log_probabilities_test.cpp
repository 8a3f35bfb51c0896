#include "engine/log_probabilities.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace quench {
namespace {

TEST(LogProbabilities, AreThoseOfTheSoftmax) {
  const std::array<float, 4> logits = {std::log(1.0f), std::log(2.0f), std::log(4.0f), std::log(1.0f)};
  const auto result = log_probabilities(logits, 3, 3);
  EXPECT_EQ(result.chosen.token, 3u);
  EXPECT_NEAR(result.chosen.log_probability, std::log(0.125), 1e-6);
  ASSERT_EQ(result.top.size(), 3u);
  EXPECT_EQ(result.top[0].token, 2u);
  EXPECT_NEAR(result.top[0].log_probability, std::log(0.5), 1e-6);
  EXPECT_EQ(result.top[1].token, 1u);
  EXPECT_EQ(result.top[2].token, 0u) << "of equals the lowest id";
}

TEST(LogProbabilities, LargeLogitsDoNotOverflowAndForbiddenTokensHaveNone) {
  const std::array<float, 3> logits = {1000.0f, 1000.0f, -INFINITY};
  const auto result = log_probabilities(logits, 0, 9);
  EXPECT_NEAR(result.chosen.log_probability, std::log(0.5), 1e-6);
  ASSERT_EQ(result.top.size(), 3u);
  EXPECT_EQ(result.top[2].log_probability, -INFINITY);
}

TEST(LogProbabilities, NoneButTheChosenWhereNoneIsAskedFor) {
  const std::array<float, 2> logits = {0.0f, 1.0f};
  EXPECT_TRUE(log_probabilities(logits, 0, 0).top.empty());
}

}  // namespace
}  // namespace quench
