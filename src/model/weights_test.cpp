#include "model/weights.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/tiny_model.h"

namespace quench {
namespace {

std::string refusal_of(const TinyModel& file, ErrorKind kind) {
  ThreadPool pool(1);
  try {
    (void)file.load(pool);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(Weights, AWrongShapeIsNamedWithTheExpectedOne) {
  TinyModel file("qwen3");
  auto& tensor = file.tensor("blk.2.ffn_down.weight");
  tensor.dims = {TinyModel::kEmbed, TinyModel::kFfn};
  EXPECT_EQ(refusal_of(file, ErrorKind::kBadFile), "weights: blk.2.ffn_down.weight is Q8_0 [64 x 96], expected 96 x 64");
}

TEST(Weights, TheFirstErrorInLayerOrderIsReported) {
  TinyModel file("qwen3");
  file.tensor("blk.2.attn_q.weight").dims = {128, 64};
  file.tensor("blk.1.ffn_up.weight").dims = {96, 64};
  std::swap(file.tensor("blk.2.attn_q.weight"), file.tensor("blk.0.attn_norm.weight"));
  EXPECT_NE(refusal_of(file, ErrorKind::kBadFile).find("blk.1.ffn_up.weight"), std::string::npos);
}

TEST(Weights, AMissingTensorIsNamed) {
  TinyModel file("gemma3");
  std::erase_if(file.tensors, [](const auto& entry) { return entry.name == "blk.1.post_ffw_norm.weight"; });
  EXPECT_EQ(refusal_of(file, ErrorKind::kBadFile), "weights: blk.1.post_ffw_norm.weight is missing");
}

TEST(Weights, ATensorThatTheFamilyDoesNotKnowIsNotIgnored) {
  TinyModel file("gemma3");
  file.add("blk.0.attn_q.bias", Format::kF32, {TinyModel::kHeads * TinyModel::kHeadDim}, 0.0f, 1.0f);
  const std::string message = refusal_of(file, ErrorKind::kUnsupported);
  EXPECT_NE(message.find("blk.0.attn_q.bias is F32 [128], but the family gemma3 has no such tensor"), std::string::npos) << message;
}

TEST(Weights, RotationFrequenciesOfOldConvertersAreIgnored) {
  TinyModel file("llama");
  file.add("blk.0.attn_rot_embd.weight", Format::kF32, {16}, 0.0f, 1.0f);
  ThreadPool pool(1);
  EXPECT_EQ(file.load(pool).config().n_vocab, TinyModel::kVocab);
}

TEST(Weights, AQuantizedVectorIsRefused) {
  TinyModel file("llama");
  file.tensor("output_norm.weight").format = Format::kQ8_0;
  const std::string message = refusal_of(file, ErrorKind::kUnsupported);
  EXPECT_NE(message.find("output_norm.weight"), std::string::npos) << message;
}

TEST(Weights, ATokenListOfAnotherLengthIsRefused) {
  TinyModel file("llama");
  file.metadata.set("tokenizer.ggml.tokens", gguf::Array(std::vector<std::string>{"a", "b"}));
  const std::string message = refusal_of(file, ErrorKind::kBadFile);
  EXPECT_NE(message.find("tokenizer.ggml.tokens lists 2 tokens"), std::string::npos) << message;
}

TEST(Weights, ATiedHeadIsTheEmbeddingItself) {
  ThreadPool pool(2);
  TinyModel file("qwen3");
  const Model tied = file.load(pool);
  EXPECT_TRUE(tied.weights().tied());
  EXPECT_EQ(&tied.weights().head(), &tied.weights().embedding);

  file.add("output.weight", Format::kQ8_0, {TinyModel::kEmbed, TinyModel::kVocab}, 0.0f, 0.3f);
  const Model untied = file.load(pool);
  EXPECT_FALSE(untied.weights().tied());
  EXPECT_GT(untied.weight_bytes(), tied.weight_bytes());
}

TEST(Weights, FrequencyDivisorsComeFromTheFile) {
  ThreadPool pool(1);
  TinyModel file("llama");
  file.add("rope_freqs.weight", Format::kF32, {TinyModel::kHeadDim / 2}, 4.0f, 1.0f);
  const Model model = file.load(pool);
  EXPECT_EQ(model.config().ropes.front().frequency_divisors, file.tensor("rope_freqs.weight").values);
  file.tensor("rope_freqs.weight").values[3] = 0.0f;
  EXPECT_EQ(refusal_of(file, ErrorKind::kBadFile), "weights: rope_freqs.weight holds a value that is not above 0");
}

TEST(Weights, ProgressRunsFromZeroToTheWhole) {
  ThreadPool pool(2);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> calls;
  const Model model =
      TinyModel("qwen2").load(pool, {.progress = [&](std::uint64_t done, std::uint64_t total) { calls.emplace_back(done, total); }});
  ASSERT_GE(calls.size(), 2u);
  EXPECT_EQ(calls.front().first, 0u);
  EXPECT_EQ(calls.back().first, calls.back().second);
  for (std::size_t i = 1; i < calls.size(); ++i) EXPECT_GT(calls[i].first, calls[i - 1].first);
}

}  // namespace
}  // namespace quench
