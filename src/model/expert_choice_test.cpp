#include "model/expert_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"

namespace quench {
namespace {

struct Chosen {
  std::vector<std::uint32_t> experts;
  std::vector<float> weights;
};

Chosen choose(std::vector<float> logits, const ExpertConfig& config, Isa isa = Isa::kScalar) {
  std::vector<ExpertChoice> choices(config.n_used);
  choices.resize(choose_experts(kernels_for(isa), config, logits, choices));
  Chosen chosen;
  for (const ExpertChoice& choice : choices) {
    chosen.experts.push_back(choice.expert);
    chosen.weights.push_back(choice.weight);
  }
  return chosen;
}

std::vector<float> logs(std::vector<float> shares) {
  for (float& share : shares) share = std::log(share);
  return shares;
}

TEST(ExpertChoice, TakesTheLargestSharesBestFirst) {
  const Chosen chosen = choose(logs({0.1f, 0.4f, 0.2f, 0.3f}), {.n_experts = 4, .n_used = 3});
  EXPECT_EQ(chosen.experts, (std::vector<std::uint32_t>{1, 3, 2}));
  EXPECT_NEAR(chosen.weights[0], 0.4f, 1e-6f);
  EXPECT_NEAR(chosen.weights[2], 0.2f, 1e-6f);
}

TEST(ExpertChoice, TiesGoToTheLowerIndex) {
  const Chosen chosen = choose({1.0f, 2.0f, 2.0f, 1.0f, 2.0f}, {.n_experts = 5, .n_used = 4});
  EXPECT_EQ(chosen.experts, (std::vector<std::uint32_t>{1, 2, 4, 0}));
}

TEST(ExpertChoice, RenormalisedWeightsSumToOneInTheSameProportions) {
  const Chosen chosen = choose(logs({0.1f, 0.4f, 0.2f, 0.3f}), {.n_experts = 4, .n_used = 2, .renormalized = true});
  EXPECT_NEAR(chosen.weights[0], 4.0f / 7.0f, 1e-6f);
  EXPECT_NEAR(chosen.weights[1], 3.0f / 7.0f, 1e-6f);
}

TEST(ExpertChoice, TopPKeepsTheShortestPrefixAndItsWholeWeight) {
  ExpertConfig config{.n_experts = 4, .n_used = 4, .renormalized = true, .top_p = 0.65f};
  const Chosen chosen = choose(logs({0.1f, 0.4f, 0.2f, 0.3f}), config);
  EXPECT_EQ(chosen.experts, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_NEAR(chosen.weights[0] + chosen.weights[1], 1.0f, 1e-6f);
  EXPECT_NEAR(chosen.weights[0] / chosen.weights[1], 4.0f / 3.0f, 1e-5f);
  config.top_p = 0.01f;
  EXPECT_EQ(choose(logs({0.1f, 0.4f, 0.2f, 0.3f}), config).experts, std::vector<std::uint32_t>{1});
}

TEST(ExpertChoice, EveryInstructionSetChoosesAndWeighsAlike) {
  Xoshiro256 random(5);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random.below(130);
    const ExpertConfig config{.n_experts = n, .n_used = 1 + random.below(n), .renormalized = round % 2 == 0};
    std::vector<float> logits(n);
    for (float& logit : logits) logit = static_cast<float>(random.uniform() * 8.0 - 4.0);
    const Chosen expected = choose(logits, config);
    for (const Isa isa : available_isas()) {
      const Chosen chosen = choose(logits, config, isa);
      ASSERT_EQ(chosen.experts, expected.experts) << isa_name(isa);
      ASSERT_EQ(chosen.weights, expected.weights) << isa_name(isa);
    }
  }
}

TEST(ExpertChoice, ATopPOutsideItsRangeIsRefused) {
  ModelConfig config;
  limit_experts(config, 1.0f);
  EXPECT_THROW(limit_experts(config, 0.5f), Error) << "a dense model has no experts";
  config.experts.n_experts = 8;
  EXPECT_THROW(limit_experts(config, 0.0f), Error);
  EXPECT_THROW(limit_experts(config, 1.5f), Error);
  EXPECT_THROW(limit_experts(config, std::nanf("")), Error);
  limit_experts(config, 0.5f);
  EXPECT_EQ(config.experts.top_p, 0.5f);
}

}  // namespace
}  // namespace quench
