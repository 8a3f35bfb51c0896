#include "sample/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace quench {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<Token> tokens(CandidateSet& set) {
  std::vector<Token> result;
  for (const auto& candidate : set.ranked()) result.push_back(candidate.token);
  return result;
}

/// Logits that give these probabilities.
std::vector<float> logits_for(const std::vector<double>& probabilities) {
  std::vector<float> row;
  for (const double p : probabilities) row.push_back(static_cast<float>(std::log(p)));
  return row;
}

std::vector<float> random_row(std::size_t size, std::uint64_t seed, double spread) {
  Xoshiro256 random(seed);
  std::vector<float> row(size);
  // Rounded to eighths, so that there are ties.
  for (auto& logit : row) logit = static_cast<float>(std::round((random.uniform() + random.uniform() - 1.0) * spread * 8.0) / 8.0);
  return row;
}

std::vector<Candidate> sorted(const std::vector<float>& row) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] > -kInfinity) all.push_back({row[i], static_cast<Token>(i)});
  }
  std::ranges::sort(all, [](const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.token < b.token; });
  return all;
}

TEST(CandidateSet, TopKEqualsAFullSortWhateverTheSizesAndTies) {
  for (const std::size_t size : {1u, 5u, 63u, 64u, 65u, 1000u, 20000u}) {
    for (const std::size_t k : {1u, 2u, 20u, 300u, 5000u}) {
      auto row = random_row(size, size * 31 + k, 4.0);
      if (size > 10) {
        row[0] = kNan;
        row[7] = -kInfinity;
        row[size - 1] = kNan;
      }
      CandidateSet set;
      ASSERT_TRUE(set.reset(row));
      set.keep_top(k);
      auto wanted = sorted(row);
      wanted.resize(std::min(k, wanted.size()));
      const auto found = set.ranked();
      ASSERT_EQ(found.size(), wanted.size()) << size << " " << k;
      for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(found[i].token, wanted[i].token) << size << " " << k << " " << i;
    }
  }
}

TEST(CandidateSet, NothingToPickIsFalseAndInfinityAnError) {
  CandidateSet set;
  EXPECT_FALSE(set.reset(std::vector<float>{}));
  EXPECT_FALSE(set.reset(std::vector{kNan, -kInfinity, kNan}));
  EXPECT_THROW(static_cast<void>(set.reset(std::vector{0.0f, kInfinity})), Error);
}

TEST(CandidateSet, NucleusIsTheShortestPrefixThatReachesP) {
  const auto row = logits_for({0.1, 0.4, 0.2, 0.3});
  const auto kept = [&](double p, std::size_t min_keep) {
    CandidateSet set;
    EXPECT_TRUE(set.reset(row));
    set.keep_nucleus(p, min_keep);
    return tokens(set);
  };
  EXPECT_EQ(kept(0.0, 0), (std::vector<Token>{1}));
  EXPECT_EQ(kept(0.39, 0), (std::vector<Token>{1}));
  EXPECT_EQ(kept(0.41, 0), (std::vector<Token>{1, 3}));
  EXPECT_EQ(kept(0.71, 0), (std::vector<Token>{1, 3, 2}));
  EXPECT_EQ(kept(0.95, 0), (std::vector<Token>{1, 3, 2, 0}));
  EXPECT_EQ(kept(0.39, 3), (std::vector<Token>{1, 3, 2}));
}

// A flat distribution needs tens of thousands of candidates: a fixed cap would show.
TEST(CandidateSet, NucleusIsExactOverTheWholeVocabulary) {
  const auto row = random_row(50000, 3, 1.0);
  auto all = sorted(row);
  double total = 0.0;
  for (const auto& candidate : all) total += std::exp(static_cast<double>(candidate.logit));
  for (const double p : {0.3, 0.9, 0.999}) {
    double sum = 0.0;
    std::size_t wanted = 0;
    while (sum < p * total) sum += std::exp(static_cast<double>(all[wanted++].logit));
    CandidateSet set;
    ASSERT_TRUE(set.reset(row));
    set.keep_nucleus(p, 0);
    ASSERT_NEAR(static_cast<double>(set.count()), static_cast<double>(wanted), 1.0) << p;
    EXPECT_EQ(set.ranked().front().token, all.front().token);
    EXPECT_EQ(set.ranked().back().token, all[set.count() - 1].token);
  }
}

TEST(CandidateSet, NucleusOfAListIsRenormalisedOverIt) {
  const auto row = logits_for({0.1, 0.4, 0.2, 0.3});
  CandidateSet set;
  ASSERT_TRUE(set.reset(row));
  set.keep_top(2);            // 0.4 and 0.3 of 0.7
  set.keep_nucleus(0.57, 0);  // 0.4 / 0.7 = 0.5714
  EXPECT_EQ(tokens(set), (std::vector<Token>{1}));
}

TEST(CandidateSet, MinPIsRelativeToTheBest) {
  const auto row = logits_for({0.05, 0.5, 0.15, 0.3});
  for (const bool list : {false, true}) {
    CandidateSet set;
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(4);
    set.keep_relative(0.29, 0);  // 0.145 and above
    EXPECT_EQ(tokens(set), (std::vector<Token>{1, 3, 2}));
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(4);
    set.keep_relative(0.9, 3);
    EXPECT_EQ(tokens(set), (std::vector<Token>{1, 3, 2}));
  }
}

TEST(CandidateSet, MinPSeesTheTemperature) {
  const auto row = logits_for({0.05, 0.5, 0.15, 0.3});
  CandidateSet set;
  ASSERT_TRUE(set.reset(row));
  set.divide_by(0.5);  // ratios are squared: 0.36 and 0.09
  set.keep_relative(0.29, 0);
  EXPECT_EQ(tokens(set), (std::vector<Token>{1, 3}));
}

TEST(CandidateSet, TopNSigmaCutsBelowTheBestByDeviations) {
  // mean 1, variance (9 + 1 + 1 + 1) / 4 = 3
  const std::vector<float> row{4.0f, 0.0f, 0.0f, 0.0f};
  for (const bool list : {false, true}) {
    CandidateSet set;
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(4);
    set.keep_sigma(2.2);  // 4 - 3.81 = 0.19
    EXPECT_EQ(tokens(set), (std::vector<Token>{0}));
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(4);
    set.keep_sigma(2.4);  // 4 - 4.16
    EXPECT_EQ(tokens(set), (std::vector<Token>{0, 1, 2, 3}));
  }
}

TEST(CandidateSet, TopNSigmaDoesNotCountForbiddenTokens) {
  const std::vector<float> row{4.0f, 0.0f, -kInfinity, 0.0f, 0.0f, kNan};
  CandidateSet set;
  ASSERT_TRUE(set.reset(row));
  set.keep_sigma(2.2);
  EXPECT_EQ(tokens(set), (std::vector<Token>{0}));
}

// Entropy of {0.7, 0.2, 0.1} is 0.8018; surprises are 0.357, 1.609 and 2.303; distances 0.445, 0.808 and 1.501.
TEST(CandidateSet, TypicalTakesTheSurpriseNearestToTheEntropy) {
  const auto row = logits_for({0.1, 0.7, 0.2});
  const auto kept = [&](double p, bool list) {
    CandidateSet set;
    EXPECT_TRUE(set.reset(row));
    if (list) set.keep_top(3);
    set.keep_typical(p, 0);
    return tokens(set);
  };
  for (const bool list : {false, true}) {
    EXPECT_EQ(kept(0.5, list), (std::vector<Token>{1}));
    EXPECT_EQ(kept(0.75, list), (std::vector<Token>{1, 2}));
    EXPECT_EQ(kept(0.95, list), (std::vector<Token>{1, 2, 0}));
  }
}

TEST(CandidateSet, TypicalMayDropTheMostProbable) {
  // 0.3 and 35 x 0.02: entropy 3.1, surprise 1.2 (distance 1.9) against 3.9 (distance 0.8).
  std::vector<double> probabilities(36, 0.02);
  probabilities[0] = 0.3;
  CandidateSet set;
  const auto row = logits_for(probabilities);
  ASSERT_TRUE(set.reset(row));
  set.keep_typical(0.5, 0);
  EXPECT_EQ(set.count(), 26u);  // 25 x 0.02 does not exceed 0.5 but for rounding
  EXPECT_NE(set.ranked().front().token, 0u);
}

TEST(CandidateSet, XtcLeavesTheLeastProbableOfTheTopChoices) {
  const auto row = logits_for({0.05, 0.4, 0.2, 0.35});
  for (const bool list : {false, true}) {
    CandidateSet set;
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(4);
    set.drop_top_choices(0.1, 0);
    EXPECT_EQ(tokens(set), (std::vector<Token>{2, 0}));
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(4);
    set.drop_top_choices(0.5, 0);  // nothing that probable
    EXPECT_EQ(tokens(set), (std::vector<Token>{1, 3, 2, 0}));
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(4);
    set.drop_top_choices(0.1, 3);  // would leave two
    EXPECT_EQ(tokens(set), (std::vector<Token>{1, 3, 2, 0}));
  }
}

TEST(CandidateSet, SurpriseIsInBits) {
  const auto row = logits_for({0.5, 0.25, 0.125, 0.125});
  for (const bool list : {false, true}) {
    CandidateSet set;
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(4);
    set.keep_surprise(2.01);
    EXPECT_EQ(tokens(set), (std::vector<Token>{0, 1}));
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(4);
    set.keep_surprise(-3.0);
    EXPECT_EQ(tokens(set), (std::vector<Token>{0}));
  }
}

TEST(CandidateSet, EntropyIsInNatsAndFollowsTheTemperature) {
  const std::vector<float> flat(1000, 2.5f);
  CandidateSet set;
  ASSERT_TRUE(set.reset(flat));
  EXPECT_NEAR(set.entropy(), std::log(1000.0), 1e-12);
  const auto row = logits_for({0.5, 0.25, 0.25});
  ASSERT_TRUE(set.reset(row));
  EXPECT_NEAR(set.entropy(), 1.5 * std::log(2.0), 1e-7);
  set.divide_by(0.5);  // 4 : 1 : 1
  EXPECT_NEAR(set.entropy(), std::log(6.0) - 4.0 / 6.0 * std::log(4.0), 1e-6);
}

TEST(CandidateSet, EditChangesTheRowOrTheListAndReranks) {
  const std::vector<float> row{3.0f, 2.0f, 1.0f};
  for (const bool list : {false, true}) {
    CandidateSet set;
    ASSERT_TRUE(set.reset(row));
    if (list) set.keep_top(3);
    set.edit(std::unordered_map<Token, double>{{0, 2.5}, {9, 1.0}}, [](double logit, double value) { return logit - value; });
    EXPECT_EQ(tokens(set), (std::vector<Token>{1, 2, 0}));
    EXPECT_EQ(set.best(), 1u);
  }
  EXPECT_EQ(row[0], 3.0f);
}

TEST(CandidateSet, DrawWalksTheRowByIdAndTheListByRank) {
  const auto row = logits_for({0.1, 0.4, 0.2, 0.3});
  CandidateSet set;
  ASSERT_TRUE(set.reset(row));
  EXPECT_EQ(set.draw(0.0).token, 0u);
  EXPECT_EQ(set.draw(0.15).token, 1u);
  EXPECT_EQ(set.draw(0.69).token, 2u);
  EXPECT_EQ(set.draw(0.9999999999).token, 3u);
  EXPECT_NEAR(set.draw(0.15).probability, 0.4, 1e-7);
  set.keep_top(3);
  EXPECT_EQ(set.draw(0.0).token, 1u);
  EXPECT_EQ(set.draw(0.5).token, 3u);
  EXPECT_EQ(set.draw(0.9999999999).token, 2u);
}

}  // namespace
}  // namespace quench
