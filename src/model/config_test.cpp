#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/family.h"
#include "model/tiny_model.h"

namespace quench {
namespace {

struct Refusal {
  ErrorKind kind;
  std::string message;
};

Refusal refusal_of(const gguf::Metadata& metadata) {
  try {
    (void)read_config(metadata);
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "nothing was refused";
  return {ErrorKind::kIo, ""};
}

TEST(Config, ReadsTheSizesOfEveryFamily) {
  for (const Family& family : all_families()) {
    const ModelConfig config = read_config(TinyModel(std::string(family.name)).metadata);
    EXPECT_EQ(config.n_layers, TinyModel::kLayers);
    EXPECT_EQ(config.n_embed, TinyModel::kEmbed);
    EXPECT_EQ(config.query_channels(), TinyModel::kHeads * TinyModel::kHeadDim);
    EXPECT_EQ(config.kv_channels(), TinyModel::kKvHeads * TinyModel::kHeadDim);
    EXPECT_EQ(config.query_scale, 1.0f / std::sqrt(32.0f));
    EXPECT_EQ(config.ropes.front().style, family.name == "llama" ? RopeStyle::kInterleaved : RopeStyle::kHalf);
  }
}

TEST(Config, NamesTheMissingKey) {
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
                          "attention.layer_norm_rms_epsilon"}) {
    const TinyModel file("qwen3");
    gguf::Metadata metadata;
    for (const auto& entry : file.metadata.entries()) {
      if (entry.key != std::string("qwen3.") + key) metadata.add(entry.key, entry.value);
    }
    const Refusal refusal = refusal_of(metadata);
    EXPECT_EQ(refusal.kind, ErrorKind::kBadFile);
    EXPECT_EQ(refusal.message, std::string("config: qwen3.") + key + " is missing");
  }
}

TEST(Config, NamesTheZeroKey) {
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
                          "attention.head_count_kv", "attention.key_length", "attention.value_length"}) {
    TinyModel file("llama");
    file.set(key, std::uint32_t{0});
    const Refusal refusal = refusal_of(file.metadata);
    EXPECT_EQ(refusal.kind, ErrorKind::kBadFile);
    EXPECT_EQ(refusal.message, std::string("config: llama.") + key + " is 0");
  }
}

TEST(Config, RefusesASizeThatNoModelHas) {
  TinyModel file("llama");
  file.set("block_count", std::uint64_t{5'000'000'000});
  EXPECT_EQ(refusal_of(file.metadata).message, "config: llama.block_count is 5000000000, at most 4096");
}

TEST(Config, ListsTheFamiliesForAnUnknownArchitecture) {
  gguf::Metadata metadata;
  metadata.add("general.architecture", std::string("mamba"));
  const Refusal refusal = refusal_of(metadata);
  EXPECT_EQ(refusal.kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal.message, "config: architecture 'mamba' is not supported; quench runs qwen3, qwen2, qwen3moe, qwen2moe, llama, gemma3");
}

TEST(Config, RefusesHeadsThatDoNotDivide) {
  TinyModel file("qwen2");
  file.set("attention.head_count_kv", std::uint32_t{3});
  EXPECT_EQ(refusal_of(file.metadata).message,
            "config: qwen2.attention.head_count is 4, no multiple of qwen2.attention.head_count_kv, which is 3");
}

TEST(Config, RefusesHeadSizesThatKernelsDoNotHave) {
  for (const std::uint32_t head_dim : {4u, 20u, 1024u}) {
    TinyModel file("qwen2");
    file.set("attention.key_length", head_dim);
    file.set("attention.value_length", head_dim);
    EXPECT_EQ(refusal_of(file.metadata).kind, ErrorKind::kUnsupported) << head_dim;
  }
}

TEST(Config, RefusesValuesOfAnotherLengthThanKeys) {
  TinyModel file("qwen3");
  file.set("attention.value_length", std::uint32_t{64});
  const Refusal refusal = refusal_of(file.metadata);
  EXPECT_EQ(refusal.kind, ErrorKind::kUnsupported);
  EXPECT_NE(refusal.message.find("qwen3.attention.value_length is 64"), std::string::npos) << refusal.message;
}

TEST(Config, RefusesWhatWouldChangeTheComputation) {
  const std::vector<std::pair<std::string, gguf::Value>> cases = {
      {"expert_count", std::uint32_t{8}},
      {"attention.causal", false},
      {"rope.scaling.type", std::string("longrope")},
      {"rope.scaling.yarn_log_multiplier", 0.1f},
  };
  for (const auto& [key, value] : cases) {
    TinyModel file("llama");
    file.set(key, value);
    const Refusal refusal = refusal_of(file.metadata);
    EXPECT_EQ(refusal.kind, ErrorKind::kUnsupported) << key;
    EXPECT_NE(refusal.message.find("llama." + key), std::string::npos) << refusal.message;
  }
}

TEST(Config, ExpertsHaveTheirOwnSizes) {
  const ModelConfig routed = read_config(TinyModel("qwen3moe").metadata);
  EXPECT_EQ(routed.experts.n_experts, TinyModel::kExperts);
  EXPECT_EQ(routed.experts.n_used, TinyModel::kExpertsUsed);
  EXPECT_EQ(routed.experts.n_ffn, TinyModel::kExpertFfn);
  EXPECT_TRUE(routed.experts.renormalized);
  EXPECT_EQ(routed.n_ffn, 0u);
  const ModelConfig shared = read_config(TinyModel("qwen2moe").metadata);
  EXPECT_FALSE(shared.experts.renormalized);
  EXPECT_EQ(shared.n_ffn, TinyModel::kFfn);
}

TEST(Config, RefusesImpossibleExperts) {
  const std::vector<std::pair<std::string, std::uint32_t>> cases = {
      {"expert_used_count", 7u}, {"expert_count", 0u}, {"expert_feed_forward_length", 24u}, {"expert_group_count", 4u}};
  for (const auto& [key, value] : cases) {
    TinyModel file("qwen3moe");
    file.set(key, value);
    EXPECT_NE(refusal_of(file.metadata).message.find("qwen3moe." + key), std::string::npos) << key;
  }
}

TEST(Config, GemmaHasFiveLocalLayersThenAGlobalOne) {
  TinyModel file("gemma3");
  file.set("block_count", std::uint32_t{13});
  file.set("attention.sliding_window", std::uint32_t{512});
  file.set("rope.freq_base", 1e6f);
  file.set("rope.scaling.type", std::string("linear"));
  file.set("rope.scaling.factor", 8.0f);
  const ModelConfig config = read_config(file.metadata);
  for (std::size_t layer = 0; layer < 13; ++layer) {
    const bool global = layer == 5 || layer == 11;
    EXPECT_EQ(config.layers[layer].window, global ? 0u : 512u) << layer;
    const RopeConfig& rope = config.ropes[config.layers[layer].rope];
    EXPECT_EQ(rope.base, global ? 1e6 : 1e4) << layer;
    EXPECT_EQ(rope.factor, global ? 8.0 : 1.0) << layer;
  }
  EXPECT_EQ(config.embedding_scale, 8.0f);
}

TEST(Config, ReadsAWindowPatternGivenAsArray) {
  TinyModel file("gemma3");
  file.set("attention.sliding_window", std::uint32_t{16});
  file.set("attention.sliding_window_pattern", gguf::Array(std::vector<bool>{false, true, false}));
  const ModelConfig config = read_config(file.metadata);
  EXPECT_EQ(config.layers[0].window, 0u);
  EXPECT_EQ(config.layers[1].window, 16u);
  file.set("attention.sliding_window_pattern", gguf::Array(std::vector<bool>{false}));
  EXPECT_EQ(refusal_of(file.metadata).kind, ErrorKind::kBadFile);
}

TEST(Config, ALargeGemmaScalesQueriesByItsEmbedding) {
  TinyModel file("gemma3");
  file.set("block_count", std::uint32_t{62});
  EXPECT_EQ(read_config(file.metadata).query_scale, 1.0f / std::sqrt(16.0f));
}

TEST(Config, AWindowOptionKeepsTheSmallerOne) {
  TinyModel file("gemma3");
  file.set("block_count", std::uint32_t{6});
  file.set("attention.sliding_window", std::uint32_t{16});
  ModelConfig config = read_config(file.metadata);
  limit_window(config, 32);
  EXPECT_EQ(config.layers[0].window, 16u);
  EXPECT_EQ(config.layers[5].window, 32u);
}

}  // namespace
}  // namespace quench
