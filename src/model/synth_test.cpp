#include "model/synth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "gguf/reader.h"
#include "model/synth_geometry.h"
#include "model/synth_recipe.h"
#include "model/synth_vocabulary.h"
#include "quant/format.h"

namespace quench {
namespace {

using gguf::Reader;
using gguf::TensorInfo;

std::string refusal_of(const SynthSpec& spec) {
  const ScratchFolder scratch;
  try {
    write_synthetic_model(spec, scratch / "model.gguf");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadRequest) << error.what();
    return error.what();
  }
  return "";
}

std::vector<float> decoded(const Reader& reader, const TensorInfo& tensor) {
  const FormatInfo& format = format_info(tensor.format);
  std::vector<std::byte> bytes(tensor.size_bytes);
  reader.read(tensor, 0, bytes);
  std::vector<float> values(tensor.columns() * tensor.rows());
  format.decode(bytes.data(), values.size() / static_cast<std::size_t>(format.block_elements), values.data());
  return values;
}

struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
};

Moments moments(const std::vector<float>& values) {
  double sum = 0.0;
  double squares = 0.0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n - sum * sum / (n * n))};
}

TEST(Synth, EveryFamilyHasItsOwnKeysAndTensors) {
  const ScratchFolder scratch;
  for (const SynthFamily& family : all_synth_families()) {
    SCOPED_TRACE(family.name);
    const std::string name(family.name);
    write_synthetic_model({.family = name, .untied = true}, scratch / "model.gguf");
    const Reader reader(scratch / "model.gguf");
    const SynthGeometry& geometry = synth_geometry(name, "tiny");
    EXPECT_EQ(*reader.metadata().string_at("general.architecture"), name);
    EXPECT_EQ(reader.metadata().unsigned_at(name + ".block_count"), geometry.n_layers);
    EXPECT_EQ(reader.metadata().contains(name + ".attention.sliding_window"), name == "gemma3");
    EXPECT_EQ(reader.metadata().contains(name + ".attention.key_length"), family.explicit_heads);
    EXPECT_EQ(reader.find("blk.1.attn_q_norm.weight") != nullptr, family.head_norms);
    EXPECT_EQ(reader.find("blk.1.attn_k.bias") != nullptr, family.biases);
    EXPECT_EQ(reader.find("blk.1.post_ffw_norm.weight") != nullptr, family.post_norms);
    EXPECT_EQ(reader.tensor("blk.0.attn_q.weight").describe(), "Q8_0 [256 x " + std::to_string(geometry.n_heads * geometry.head_dim) + "]");
    EXPECT_EQ(reader.tensor("output.weight").describe(), reader.tensor("token_embd.weight").describe());
    EXPECT_EQ(reader.tensor("token_embd.weight").rows(), reader.metadata().strings_at("tokenizer.ggml.tokens")->size());
    EXPECT_EQ(reader.tensor("output_norm.weight").describe(), "F32 [256]");
  }
}

TEST(Synth, TheSameSeedGivesTheSameBytesAndAnotherSeedOthers) {
  const ScratchFolder scratch;
  write_synthetic_model({.seed = 7}, scratch / "a.gguf");
  write_synthetic_model({.seed = 7}, scratch / "b.gguf");
  write_synthetic_model({.seed = 8}, scratch / "c.gguf");
  EXPECT_TRUE(bytes_of(scratch / "a.gguf") == bytes_of(scratch / "b.gguf"));
  const Reader a(scratch / "a.gguf");
  const Reader c(scratch / "c.gguf");
  for (const char* name : {"token_embd.weight", "blk.0.attn_q.weight", "output_norm.weight"}) {
    EXPECT_NE(decoded(a, a.tensor(name)), decoded(c, c.tensor(name))) << name;
  }
  EXPECT_NE(decoded(a, a.tensor("blk.0.attn_q.weight")), decoded(a, a.tensor("blk.1.attn_q.weight")));
}

TEST(Synth, EveryFormatOfTheTableIsWrittenUnderItsNameInAnyCase) {
  const ScratchFolder scratch;
  for (const FormatInfo& format : all_formats()) {
    SCOPED_TRACE(format.name);
    std::string name(format.name);
    if (format.block_elements > 1)
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    write_synthetic_model({.format = name, .vocabulary_size = 512}, scratch / "model.gguf");
    const Reader reader(scratch / "model.gguf");
    for (const TensorInfo& tensor : reader.tensors()) {
      EXPECT_EQ(tensor.format, tensor.n_dims == 1 ? Format::kF32 : format.format) << tensor.name;
    }
    const Moments found = moments(decoded(reader, reader.tensor("blk.0.ffn_down.weight")));
    EXPECT_NEAR(found.mean, 0.0, 0.006);
    EXPECT_NEAR(found.deviation, 1.0 / std::sqrt(512.0), 0.1 / std::sqrt(512.0));
  }
}

TEST(Synth, NormsAreNearTheirMeanAndNeverRandomSigns) {
  const ScratchFolder scratch;
  write_synthetic_model({.family = "gemma3"}, scratch / "model.gguf");
  const Reader reader(scratch / "model.gguf");
  for (const TensorInfo& tensor : reader.tensors()) {
    if (tensor.n_dims != 1) continue;
    const std::vector<float> values = decoded(reader, tensor);
    EXPECT_GT(*std::ranges::min_element(values), 0.5f) << tensor.name;
    EXPECT_LT(*std::ranges::max_element(values), 8.0f) << tensor.name;
    EXPECT_GT(moments(values).deviation, 0.01) << tensor.name;
  }
}

TEST(Synth, RopeScalingIsWrittenAsLlamaCppReadsIt) {
  const ScratchFolder scratch;
  const auto path = scratch / "model.gguf";
  write_synthetic_model({.rope_scaling = "linear", .rope_factor = 2.0}, path);
  const Reader linear(path);
  EXPECT_EQ(*linear.metadata().string_at("qwen3.rope.scaling.type"), "linear");
  EXPECT_EQ(linear.metadata().number_at("qwen3.rope.scaling.factor"), 2.0);
  EXPECT_EQ(linear.metadata().unsigned_at("qwen3.context_length"), 4096u);
  write_synthetic_model({.context_length = 1000, .rope_scaling = "yarn"}, path);
  const Reader yarn(path);
  EXPECT_EQ(*yarn.metadata().string_at("qwen3.rope.scaling.type"), "yarn");
  EXPECT_EQ(yarn.metadata().unsigned_at("qwen3.rope.scaling.original_context_length"), 2048u);
  EXPECT_EQ(yarn.metadata().unsigned_at("qwen3.context_length"), 1000u);
  EXPECT_FALSE(yarn.find("rope_freqs.weight") != nullptr);
}

TEST(Synth, Llama3ScalingDividesLowFrequenciesByTheFactorAndHighOnesNot) {
  const ScratchFolder scratch;
  write_synthetic_model({.family = "llama", .rope_scaling = "llama3", .rope_factor = 8.0}, scratch / "model.gguf");
  const Reader reader(scratch / "model.gguf");
  const std::vector<float> divisors = decoded(reader, reader.tensor("rope_freqs.weight"));
  ASSERT_EQ(divisors.size(), 32u);
  EXPECT_EQ(divisors.front(), 1.0f);
  EXPECT_EQ(divisors.back(), 8.0f);
  EXPECT_TRUE(std::ranges::is_sorted(divisors));
  EXPECT_FALSE(reader.metadata().contains("llama.rope.scaling.type"));
}

TEST(Synth, AnImpossibleSpecSaysWhatIsPossible) {
  EXPECT_NE(refusal_of({.family = "qwen9"}).find("unknown family qwen9; there are qwen3, qwen2, qwen3moe, qwen2moe, llama, gemma3"),
            std::string::npos);
  EXPECT_NE(refusal_of({.size = "9b"}).find("qwen3 has no size 9b; there are tiny, small, 0.6b"), std::string::npos);
  EXPECT_NE(refusal_of({.format = "q9_9"}).find("unknown format q9_9; there are F32 F16"), std::string::npos);
  EXPECT_NE(refusal_of({.format = "f16_mix"}).find("unknown format f16_mix"), std::string::npos);
  EXPECT_NE(refusal_of({.vocabulary_size = 100}).find("100 entries; it takes 512"), std::string::npos);
  EXPECT_NE(refusal_of({.rope_scaling = "cubic"}).find("unknown rope scaling cubic"), std::string::npos);
  EXPECT_NE(refusal_of({.rope_scaling = "llama3"}).find("is for family llama, not qwen3"), std::string::npos);
  EXPECT_NE(refusal_of({.rope_scaling = "yarn", .rope_factor = 0.5}).find("rope factor"), std::string::npos);
  EXPECT_NE(refusal_of({.context_length = 0}).find("context length of 0"), std::string::npos);
  EXPECT_THROW((void)synth_sizes("qwen9"), Error);
  EXPECT_EQ(synth_families().size(), 6u);
  EXPECT_EQ(synth_sizes("gemma3").size(), 4u);
}

TEST(SynthVocabulary, HasExactlyTheEntriesAskedForAndNoneTwice) {
  for (const auto& [family, n_vocab] : {std::pair<const char*, std::size_t>{"qwen3", 512},
                                        {"qwen3", 151936},
                                        {"llama", 3000},
                                        {"llama", 100000},
                                        {"gemma3", 512},
                                        {"gemma3", 20000}}) {
    SCOPED_TRACE(std::string(family) + " " + std::to_string(n_vocab));
    const gguf::Metadata keys = generate_vocabulary(family, n_vocab, 1);
    const std::vector<std::string>& tokens = *keys.strings_at("tokenizer.ggml.tokens");
    EXPECT_EQ(tokens.size(), n_vocab);
    EXPECT_EQ(keys.integers_at("tokenizer.ggml.token_type")->size(), n_vocab);
    EXPECT_EQ(std::unordered_set<std::string>(tokens.begin(), tokens.end()).size(), n_vocab);
    for (const char* id : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}) EXPECT_LT(keys.unsigned_at(id), n_vocab);
    ASSERT_NE(keys.string_at("tokenizer.chat_template"), nullptr);
  }
}

TEST(SynthVocabulary, EveryMergeJoinsTwoTokensIntoAThird) {
  for (const char* family : {"qwen3", "llama"}) {
    const gguf::Metadata keys = generate_vocabulary(family, 5000, 3);
    const std::vector<std::string>& tokens = *keys.strings_at("tokenizer.ggml.tokens");
    const std::vector<std::string>& merges = *keys.strings_at("tokenizer.ggml.merges");
    const std::set<std::string> known(tokens.begin(), tokens.end());
    EXPECT_GT(merges.size(), 4000u);
    for (const std::string& merge : merges) {
      const std::size_t space = merge.find(' ');
      ASSERT_NE(space, std::string::npos);
      const std::string left = merge.substr(0, space);
      const std::string right = merge.substr(space + 1);
      EXPECT_TRUE(known.contains(left) && known.contains(right) && known.contains(left + right)) << merge;
    }
  }
}

TEST(SynthVocabulary, ACopiedOneIsPaddedWithUnusedTokens) {
  const ScratchFolder scratch;
  write_synthetic_model({.family = "gemma3", .vocabulary_size = 700}, scratch / "vocabulary.gguf");
  write_synthetic_model({.vocabulary = scratch / "vocabulary.gguf", .vocabulary_size = 800}, scratch / "padded.gguf");
  write_synthetic_model({.vocabulary = scratch / "vocabulary.gguf"}, scratch / "as-is.gguf");
  const Reader original(scratch / "vocabulary.gguf");
  const Reader padded(scratch / "padded.gguf");
  const Reader as_is(scratch / "as-is.gguf");
  EXPECT_EQ(padded.tensor("token_embd.weight").rows(), 800u);
  EXPECT_EQ(as_is.tensor("token_embd.weight").rows(), 700u);
  const auto& tokens = *padded.metadata().strings_at("tokenizer.ggml.tokens");
  EXPECT_EQ(tokens[699], original.metadata().strings_at("tokenizer.ggml.tokens")->back());
  EXPECT_EQ(tokens[700], "[PAD700]");
  EXPECT_EQ(padded.metadata().integers_at("tokenizer.ggml.token_type")->at(799), 5);
  EXPECT_EQ(padded.metadata().floats_at("tokenizer.ggml.scores")->size(), 800u);
  EXPECT_EQ(*padded.metadata().string_at("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(*padded.metadata().string_at("general.architecture"), "qwen3");
}

TEST(SynthVocabulary, AFileWithoutOneIsAnError) {
  const std::filesystem::path file = std::filesystem::path(QUENCH_SOURCE_DIR) / "tests/corpus/gguf/good/version3.gguf";
  try {
    (void)copy_vocabulary(file, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    EXPECT_NE(std::string(error.what()).find("has no tokenizer.ggml.tokens"), std::string::npos);
  }
}

TEST(FormatRecipe, RowsThatAreNoWholeBlocksFallBack) {
  const auto format_at = [](const char* name, std::uint64_t columns) {
    return FormatRecipe::named(name).format_of({.role = TensorRole::kUp, .columns = columns});
  };
  EXPECT_EQ(format_at("q4_K", 512), Format::kQ4_K);
  EXPECT_EQ(format_at("q4_K", 576), Format::kQ5_0);
  EXPECT_EQ(format_at("q6_K", 640), Format::kQ8_0);
  EXPECT_EQ(format_at("iq2_xs", 576), Format::kIq4_NL);
  EXPECT_EQ(format_at("q2_K", 576), Format::kQ4_0);
  EXPECT_EQ(format_at("q8_0", 48), Format::kF16);
  EXPECT_EQ(format_at("f32", 7), Format::kF32);
}

/// "q4_K*3 q6_K*1", after the role's name.
std::vector<std::string> unrolled(const std::string& field) {
  std::istringstream stream(field);
  std::string word;
  stream >> word;
  std::vector<std::string> formats;
  while (stream >> word) {
    const std::size_t star = word.find('*');
    formats.insert(formats.end(), std::stoul(word.substr(star + 1)), word.substr(0, star));
  }
  return formats;
}

TensorPlace place_in(const SynthGeometry& geometry, std::size_t role, std::size_t layer) {
  // In the order of the golden file's fields.
  constexpr std::array kRoles = {TensorRole::kEmbedding,       TensorRole::kQuery, TensorRole::kKey, TensorRole::kValue,
                                 TensorRole::kAttentionOutput, TensorRole::kGate,  TensorRole::kUp,  TensorRole::kDown};
  std::uint64_t columns = geometry.n_embed;
  if (kRoles.at(role) == TensorRole::kAttentionOutput) columns = geometry.n_heads * geometry.head_dim;
  if (kRoles.at(role) == TensorRole::kDown) columns = geometry.n_ffn;
  return {kRoles.at(role),
          static_cast<int>(layer),
          static_cast<int>(geometry.n_layers),
          static_cast<int>(geometry.n_heads / geometry.n_kv_heads),
          geometry.tied,
          columns};
}

TEST(FormatRecipe, MixesGiveEachMatrixTheFormatThatLlamaCppGivesIt) {
  std::ifstream stream(std::filesystem::path(QUENCH_SOURCE_DIR) / "tests/golden/mixes.tsv");
  std::size_t n_compared = 0;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::array<std::string, 3> head;
    for (std::string& field : head) std::getline(fields, field, '\t');
    const SynthGeometry& geometry = synth_geometry(head[0], head[1]);
    const FormatRecipe recipe = FormatRecipe::named(head[2]);
    std::string field;
    for (std::size_t role = 0; std::getline(fields, field, '\t'); ++role) {
      const std::vector<std::string> expected = unrolled(field);
      for (std::size_t layer = 0; layer < expected.size(); ++layer) {
        const Format found = recipe.format_of(place_in(geometry, role, layer));
        EXPECT_EQ(format_info(found).name, expected[layer])
            << head[0] << " " << head[1] << " " << head[2] << ": " << field << ", layer " << layer;
        ++n_compared;
      }
    }
  }
  EXPECT_GT(n_compared, 5000u);
}

}  // namespace
}  // namespace quench
