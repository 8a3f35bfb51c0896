#include "model/step_cost.h"

#include <gtest/gtest.h>

#include "model/tiny_model.h"

namespace quench {
namespace {

constexpr std::uint64_t kQuery = TinyModel::kEmbed * TinyModel::kHeads * TinyModel::kHeadDim;
constexpr std::uint64_t kKeyAndValue = 2 * TinyModel::kEmbed * TinyModel::kKvHeads * TinyModel::kHeadDim;
constexpr std::uint64_t kFeedForward = 3 * TinyModel::kEmbed * TinyModel::kFfn;
constexpr std::uint64_t kHead = TinyModel::kEmbed * TinyModel::kVocab;
/// Elements of a layer's matrices: query and output are of one size.
constexpr std::uint64_t kLayer = 2 * kQuery + kKeyAndValue + kFeedForward;
constexpr std::uint64_t kChannels = TinyModel::kHeads * TinyModel::kHeadDim;
/// Keys and values of one position in one layer, f16.
constexpr std::uint64_t kPositionBytes = 2 * 2 * TinyModel::kKvHeads * TinyModel::kHeadDim;

TEST(StepCost, DecodingReadsEveryMatrixAndEveryVisiblePositionOnce) {
  ThreadPool pool(1);
  const Model model = TinyModel("qwen3").load(pool);
  const StepCost cost = decode_cost(model, model.kv_layout(), 9, 1);
  EXPECT_EQ(cost.int8_operations, 2 * (TinyModel::kLayers * kLayer + kHead));
  EXPECT_EQ(cost.f32_operations, TinyModel::kLayers * 4 * 10 * kChannels);
  EXPECT_EQ(cost.cache_bytes, TinyModel::kLayers * 10 * kPositionBytes);
  // The embedding is the head, and all that is not counted are vectors.
  EXPECT_LT(cost.weight_bytes, model.weight_bytes());
  EXPECT_GT(cost.weight_bytes, model.weight_bytes() * 9 / 10);
}

TEST(StepCost, SequencesSideBySideShareTheReadingOfTheWeights) {
  ThreadPool pool(1);
  const Model model = TinyModel("qwen3").load(pool);
  const KvLayout layout = model.kv_layout(CacheType::kQ8_0);
  const StepCost one = decode_cost(model, layout, 9, 4);
  const StepCost many = decode_cost(model, layout, 9, 4, 16);
  EXPECT_EQ(many.weight_bytes, one.weight_bytes);
  EXPECT_EQ(many.cache_bytes, 16 * one.cache_bytes);
  EXPECT_EQ(many.operations(), 16 * one.operations());
  EXPECT_LT(one.cache_bytes, decode_cost(model, model.kv_layout(), 9, 4).cache_bytes) << "q8_0 is smaller";
}

TEST(StepCost, DecodingSeveralTokensIsTheSumOfDecodingEach) {
  ThreadPool pool(1);
  const Model model = TinyModel("qwen3").load(pool);
  StepCost sum = decode_cost(model, model.kv_layout(), 3, 1);
  sum += decode_cost(model, model.kv_layout(), 4, 1);
  const StepCost both = decode_cost(model, model.kv_layout(), 3, 2);
  EXPECT_EQ(both.bytes(), sum.bytes());
  EXPECT_EQ(both.operations(), sum.operations());
}

TEST(StepCost, TheLastLayerOfAPrefillComputesOneRow) {
  ThreadPool pool(1);
  const Model model = TinyModel("qwen3").load(pool);
  const StepCost cost = prefill_cost(model, model.kv_layout(), 0, 5, 512);
  const std::uint64_t whole_layers = (TinyModel::kLayers - 1) * kLayer * 5;
  const std::uint64_t last_layer = kKeyAndValue * 5 + kLayer - kKeyAndValue;
  EXPECT_EQ(cost.int8_operations, 2 * (whole_layers + last_layer + kHead));
  EXPECT_EQ(cost.f32_operations, 4 * kChannels * ((TinyModel::kLayers - 1) * (1 + 2 + 3 + 4 + 5) + 5));
  EXPECT_EQ(cost.cache_bytes, TinyModel::kLayers * 5 * kPositionBytes);
  EXPECT_EQ(cost.weight_bytes, decode_cost(model, model.kv_layout(), 0, 1).weight_bytes);
}

TEST(StepCost, SmallerPassesReadWeightsAgainAndComputeTheSame) {
  ThreadPool pool(1);
  const Model model = TinyModel("qwen3").load(pool);
  const StepCost one = prefill_cost(model, model.kv_layout(), 0, 8, 8);
  const StepCost two = prefill_cost(model, model.kv_layout(), 0, 8, 4);
  EXPECT_EQ(two.int8_operations, one.int8_operations);
  EXPECT_GT(two.weight_bytes, one.weight_bytes);
  EXPECT_LT(two.weight_bytes, 2 * one.weight_bytes);  // the first pass needs no head, and little of the last layer
}

TEST(StepCost, AWindowBoundsWhatIsReadAndComputed) {
  ThreadPool pool(1);
  const Model model = TinyModel("qwen3").load(pool, {.window = 4});
  const StepCost cost = decode_cost(model, model.kv_layout(), 9, 1);
  EXPECT_EQ(cost.cache_bytes, TinyModel::kLayers * 4 * kPositionBytes);
  EXPECT_EQ(cost.f32_operations, TinyModel::kLayers * 4 * 4 * kChannels);
  // Three rows whose windows of four positions overlap.
  EXPECT_EQ(prefill_cost(model, model.kv_layout(), 9, 3, 512).cache_bytes, ((TinyModel::kLayers - 1) * 6 + 4) * kPositionBytes);
}

TEST(StepCost, FloatWeightsAreFloatOperations) {
  ThreadPool pool(1);
  const Model model = TinyModel("qwen3", Format::kF16).load(pool);
  const StepCost cost = decode_cost(model, model.kv_layout(), 0, 1);
  EXPECT_EQ(cost.int8_operations, 0u);
  EXPECT_EQ(cost.f32_operations, 2 * (TinyModel::kLayers * kLayer + kHead) + TinyModel::kLayers * 4 * kChannels);
}

TEST(StepCost, ATokenUsesSomeOfTheExperts) {
  ThreadPool pool(1);
  const Model model = TinyModel("qwen3moe").load(pool);
  const std::uint64_t experts = 3 * TinyModel::kEmbed * TinyModel::kExpertFfn * TinyModel::kExpertsUsed;
  const std::uint64_t router = TinyModel::kEmbed * TinyModel::kExperts;
  const StepCost cost = decode_cost(model, model.kv_layout(), 0, 1);
  EXPECT_EQ(cost.operations(),
            2 * (TinyModel::kLayers * (kLayer - kFeedForward + experts + router) + kHead) + TinyModel::kLayers * 4 * kChannels);
}

}  // namespace
}  // namespace quench
