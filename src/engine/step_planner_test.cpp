#include "engine/step_planner.h"

#include <gtest/gtest.h>

#include <numeric>

namespace quench {
namespace {

/// 20 ms for the weights, 5 ms a row.
StepTimes steady_machine() {
  StepTimes times;
  for (int round = 0; round < 200; ++round) {
    for (std::size_t rows = 1; rows <= 512; rows *= 2)
      times.observe({.rows = rows, .attended = 0.0}, 0.02 + 0.005 * static_cast<double>(rows));
  }
  return times;
}

std::vector<std::size_t> plan(const std::vector<PlannedSequence>& sequences, const StepTimes& times, StepPlannerOptions options = {}) {
  StepPlanner planner(options);
  const auto rows = planner.plan(sequences, times);
  return {rows.begin(), rows.end()};
}

TEST(StepPlanner, EveryoneWhoWaitsForATokenGetsIt) {
  const std::vector<PlannedSequence> sequences(16, {.length = 100, .decode_rows = 1});
  EXPECT_EQ(plan(sequences, steady_machine()), std::vector<std::size_t>(16, 1));
}

TEST(StepPlanner, APromptAddsAtMostItsTimeToAStepWithAnswers) {
  const auto rows = plan({{.length = 100, .decode_rows = 1}, {.length = 0, .prompt_left = 4096}}, steady_machine());
  EXPECT_EQ(rows[0], 1u);
  // 100 ms at 5 ms a row.
  EXPECT_NEAR(static_cast<double>(rows[1]), 20.0, 2.0);
}

TEST(StepPlanner, PromptsAloneTakeLongerSteps) {
  const auto rows = plan({{.length = 0, .prompt_left = 4096}}, steady_machine());
  // 500 ms, of which 20 are the weights.
  EXPECT_NEAR(static_cast<double>(rows[0]), 96.0, 5.0);
}

TEST(StepPlanner, AShortPromptGetsHalfBesideALongOne) {
  const auto rows = plan({{.length = 0, .prompt_left = 4096}, {.length = 0, .prompt_left = 60}}, steady_machine());
  EXPECT_NEAR(static_cast<double>(rows[1]), 48.0, 4.0);
  EXPECT_NEAR(static_cast<double>(rows[0] + rows[1]), 96.0, 6.0);
}

TEST(StepPlanner, WhatAShortPromptLeavesGoesToTheOthers) {
  const auto rows = plan({{.length = 0, .prompt_left = 4096}, {.length = 0, .prompt_left = 10}}, steady_machine());
  EXPECT_EQ(rows[1], 10u);
  EXPECT_NEAR(static_cast<double>(rows[0]), 86.0, 5.0);
}

TEST(StepPlanner, HigherPriorityGoesFirst) {
  const auto rows =
      plan({{.length = 0, .prompt_left = 50, .priority = 0}, {.length = 0, .prompt_left = 4096, .priority = 1}}, steady_machine());
  EXPECT_EQ(rows[0], 0u);
  EXPECT_GT(rows[1], 80u);
}

TEST(StepPlanner, NobodyStarvesBehindShorterPrompts) {
  std::vector<PlannedSequence> sequences(40, {.length = 0, .prompt_left = 5});
  sequences.push_back({.length = 0, .prompt_left = 4096});
  sequences.push_back({.length = 10, .decode_rows = 1});
  EXPECT_GE(plan(sequences, steady_machine())[40], 1u);
}

TEST(StepPlanner, NeverExceedsTheChunk) {
  std::vector<PlannedSequence> sequences(10, {.length = 0, .decode_rows = 3});
  sequences.push_back({.length = 0, .prompt_left = 100});
  const auto rows = plan(sequences, StepTimes(), {.chunk = 20});
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::size_t{0}), 20u);
  EXPECT_EQ(rows[6], 2u);
  EXPECT_EQ(rows[7], 0u);
}

TEST(StepPlanner, TheFirstStepIsSmall) { EXPECT_EQ(plan({{.length = 0, .prompt_left = 4096}}, StepTimes())[0], 64u); }

}  // namespace
}  // namespace quench
