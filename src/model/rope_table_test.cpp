#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/cpu.h"
#include "kernels/table.h"

namespace quench {
namespace {

RopeConfig plain_rope() { return {.style = RopeStyle::kHalf, .n_rot = 8, .base = 10000.0}; }

TEST(RopeTable, IsTheIdentityAtPositionZero) {
  RopeTable table(plain_rope(), 1);
  table.fill(0, 0, 1);
  std::vector<float> head = {1.5f, -2.0f, 3.0f, 0.25f, -7.0f, 11.0f, 0.5f, 1.0f};
  const std::vector<float> before = head;
  kernels_for(Isa::kScalar).rope(head.data(), table.cos_row(0), table.sin_row(0), 8, RopeStyle::kHalf);
  EXPECT_EQ(head, before);
}

TEST(RopeTable, TurnsTheFirstPairByOneRadianAtPositionOne) {
  RopeTable table(plain_rope(), 2);
  table.fill(0, 0, 2);
  std::vector<float> half(8, 0.0f);
  half[0] = 1.0f;
  kernels_for(Isa::kScalar).rope(half.data(), table.cos_row(1), table.sin_row(1), 8, RopeStyle::kHalf);
  EXPECT_FLOAT_EQ(half[0], static_cast<float>(std::cos(1.0)));
  EXPECT_FLOAT_EQ(half[4], static_cast<float>(std::sin(1.0)));

  std::vector<float> interleaved(8, 0.0f);
  interleaved[0] = 1.0f;
  kernels_for(Isa::kScalar).rope(interleaved.data(), table.cos_row(1), table.sin_row(1), 8, RopeStyle::kInterleaved);
  EXPECT_FLOAT_EQ(interleaved[0], static_cast<float>(std::cos(1.0)));
  EXPECT_FLOAT_EQ(interleaved[1], static_cast<float>(std::sin(1.0)));
}

TEST(RopeTable, RowsDependOnThePositionOnly) {
  RopeTable together(plain_rope(), 40);
  RopeTable alone(plain_rope(), 1);
  together.fill(0, 100, 40);
  alone.fill(0, 137, 1);
  for (std::size_t pair = 0; pair < 4; ++pair) {
    EXPECT_EQ(together.cos_row(37)[pair], alone.cos_row(0)[pair]);
    EXPECT_EQ(together.sin_row(37)[pair], alone.sin_row(0)[pair]);
  }
}

TEST(RopeTable, ScoresDependOnTheDifferenceOfPositionsOnly) {
  RopeTable table(plain_rope(), 1);
  const std::vector<float> query = {0.3f, -1.0f, 0.7f, 0.2f, 0.9f, -0.4f, 0.1f, 0.8f};
  const std::vector<float> key = {-0.6f, 0.5f, 0.3f, 1.0f, 0.2f, 0.4f, -0.9f, 0.7f};
  const auto score = [&](std::size_t query_position, std::size_t key_position) {
    std::vector<float> q = query;
    std::vector<float> k = key;
    table.fill(0, query_position, 1);
    kernels_for(Isa::kScalar).rope(q.data(), table.cos_row(0), table.sin_row(0), 8, RopeStyle::kHalf);
    table.fill(0, key_position, 1);
    kernels_for(Isa::kScalar).rope(k.data(), table.cos_row(0), table.sin_row(0), 8, RopeStyle::kHalf);
    double sum = 0.0;
    for (std::size_t i = 0; i < 8; ++i) sum += static_cast<double>(q[i]) * static_cast<double>(k[i]);
    return sum;
  };
  EXPECT_NEAR(score(5, 2), score(1003, 1000), 1e-5);
  EXPECT_NEAR(score(70, 70), score(0, 0), 1e-5);
  EXPECT_GT(std::fabs(score(5, 2) - score(6, 2)), 1e-3);
}

TEST(RopeTable, LinearScalingDividesPositions) {
  RopeConfig rope = plain_rope();
  rope.scaling = RopeScaling::kLinear;
  rope.factor = 4.0;
  const RopeFrequencies plain = rope_frequencies(plain_rope());
  const RopeFrequencies scaled = rope_frequencies(rope);
  for (std::size_t pair = 0; pair < 4; ++pair) EXPECT_DOUBLE_EQ(scaled.radians[pair] * 4.0, plain.radians[pair]);
  EXPECT_EQ(scaled.magnitude, 1.0);
}

TEST(RopeTable, YarnKeepsFastPairsAndInterpolatesSlowOnes) {
  RopeConfig rope{
      .style = RopeStyle::kHalf, .n_rot = 128, .base = 1e6, .scaling = RopeScaling::kYarn, .factor = 4.0, .original_context = 32768.0};
  const RopeFrequencies plain = rope_frequencies({.style = RopeStyle::kHalf, .n_rot = 128, .base = 1e6});
  const RopeFrequencies yarn = rope_frequencies(rope);
  EXPECT_DOUBLE_EQ(yarn.radians.front(), plain.radians.front());
  EXPECT_DOUBLE_EQ(yarn.radians.back(), plain.radians.back() / 4.0);
  EXPECT_DOUBLE_EQ(yarn.magnitude, 1.0 + 0.1 * std::log(4.0));
  // Pairs that turn 32 and 1 times over 32,768 positions are 23.6 and 39.6: the ramp runs from 23 to 40.
  EXPECT_DOUBLE_EQ(yarn.radians[23], plain.radians[23]);
  EXPECT_LT(yarn.radians[24], plain.radians[24]);
  EXPECT_GT(yarn.radians[39], plain.radians[39] / 4.0 * 1.0001);
  EXPECT_DOUBLE_EQ(yarn.radians[40], plain.radians[40] / 4.0);
}

TEST(RopeTable, DivisorsOfTheFileSlowPairsDown) {
  RopeConfig rope = plain_rope();
  rope.frequency_divisors = {1.0f, 1.0f, 2.0f, 8.0f};
  const RopeFrequencies plain = rope_frequencies(plain_rope());
  const RopeFrequencies scaled = rope_frequencies(rope);
  EXPECT_DOUBLE_EQ(scaled.radians[1], plain.radians[1]);
  EXPECT_DOUBLE_EQ(scaled.radians[3] * 8.0, plain.radians[3]);
}

}  // namespace
}  // namespace quench
