#include "sample/dry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "base/random.h"

namespace quench {
namespace {

SamplerSettings settings(int allowed = 2) {
  SamplerSettings result;
  result.dry_multiplier = 0.8;
  result.dry_base = 2.0;
  result.dry_allowed_length = allowed;
  result.dry_penalty_last_n = -1;
  return result;
}

std::unordered_map<Token, double> dry_penalties(std::span<const Token> history, const SamplerSettings& given) {
  return Dry(given).penalties(history);
}

TEST(Dry, ATokenThatWouldProlongARepetitionPaysByItsLength) {
  // 1 2 3 4 ... 1 2 3: the 4 would make a repetition of three one longer.
  const std::vector<Token> history{1, 2, 3, 4, 9, 1, 2, 3};
  const auto found = dry_penalties(history, settings());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_DOUBLE_EQ(found.at(4), 0.8 * 2.0);
}

TEST(Dry, TheLongestRepetitionCounts) {
  const std::vector<Token> history{1, 2, 3, 4, 8, 2, 3, 4, 7, 2, 3, 5, 1, 2, 3};
  const auto found = dry_penalties(history, settings());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_DOUBLE_EQ(found.at(4), 0.8 * 2.0);
  EXPECT_DOUBLE_EQ(found.at(5), 0.8);
}

TEST(Dry, ShortRepetitionsAreFree) {
  const std::vector<Token> history{1, 2, 3, 9, 2};
  EXPECT_TRUE(dry_penalties(history, settings()).empty());
  EXPECT_EQ(dry_penalties(history, settings(1)).size(), 1u);
}

TEST(Dry, ARepetitionStopsAtABreaker) {
  auto with_breaker = settings();
  with_breaker.dry_breakers = {{2}};
  const std::vector<Token> history{1, 2, 3, 4, 9, 1, 2, 3};
  EXPECT_TRUE(dry_penalties(history, with_breaker).empty());  // only the 3 is left of the repetition
  with_breaker.dry_breakers = {{1, 2}};
  EXPECT_TRUE(dry_penalties(history, with_breaker).empty());
  with_breaker.dry_breakers = {{2, 1}};
  EXPECT_EQ(dry_penalties(history, with_breaker).size(), 1u);
}

TEST(Dry, ABreakerItselfIsNeverPenalised) {
  auto with_breaker = settings();
  with_breaker.dry_breakers = {{4}};
  const std::vector<Token> history{1, 2, 3, 4, 1, 2, 3};
  EXPECT_TRUE(dry_penalties(history, with_breaker).empty());
}

TEST(Dry, OnlyTheWindowCounts) {
  auto narrow = settings();
  narrow.dry_penalty_last_n = 7;
  const std::vector<Token> history{1, 2, 3, 4, 9, 1, 2, 3};
  EXPECT_DOUBLE_EQ(dry_penalties(history, narrow).at(4), 0.8);  // only 2 3 is seen twice
  narrow.dry_penalty_last_n = 5;
  EXPECT_TRUE(dry_penalties(history, narrow).empty());
  narrow.dry_penalty_last_n = 0;
  EXPECT_TRUE(dry_penalties(history, narrow).empty());
}

TEST(Dry, AVeryLongRepetitionStaysFinite) {
  const std::vector<Token> history(5000, 7);
  const auto found = dry_penalties(history, settings());
  EXPECT_EQ(found.at(7), 1e37);
}

/// The definition, position by position.
std::map<Token, double> by_definition(const std::vector<Token>& history, const SamplerSettings& given) {
  std::map<Token, std::size_t> longest;
  const std::size_t size = history.size();
  for (std::size_t end = 1; end < size; ++end) {  // history[end] followed a copy that ends before it
    std::size_t n = 0;
    while (n < end && history[end - 1 - n] == history[size - 1 - n]) ++n;
    if (n >= static_cast<std::size_t>(given.dry_allowed_length)) longest[history[end]] = std::max(longest[history[end]], n);
  }
  std::map<Token, double> result;
  for (const auto& [token, n] : longest) {
    result[token] = given.dry_multiplier * std::pow(given.dry_base, static_cast<double>(n) - given.dry_allowed_length);
  }
  return result;
}

TEST(Dry, EqualsItsDefinitionOnRandomTexts) {
  Xoshiro256 random(5);
  for (int round = 0; round < 500; ++round) {
    std::vector<Token> history(random.below(60));
    for (auto& token : history) token = static_cast<Token>(random.below(3));
    const auto given = settings(static_cast<int>(1 + random.below(3)));
    const auto found = dry_penalties(history, given);
    const auto wanted = by_definition(history, given);
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [token, penalty] : wanted) ASSERT_DOUBLE_EQ(found.at(token), penalty);
  }
}

}  // namespace
}  // namespace quench
