#include "text/tokenizer_loader.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "gguf/metadata.h"

namespace quench {
namespace {

using gguf::Array;
using gguf::Metadata;
using Strings = std::vector<std::string>;
using Ints = std::vector<std::int32_t>;

Metadata byte_level_file() {
  Metadata file;
  file.set("tokenizer.ggml.model", std::string("gpt2"));
  file.set("tokenizer.ggml.pre", std::string("qwen2"));
  file.set("tokenizer.ggml.tokens", Array(Strings{"a", "b", "ab", "<|im_end|>"}));
  file.set("tokenizer.ggml.token_type", Array(Ints{1, 1, 1, 3}));
  file.set("tokenizer.ggml.merges", Array(Strings{"a b"}));
  file.set("tokenizer.ggml.eos_token_id", std::uint32_t{3});
  return file;
}

Metadata byte_level_file_without(std::string_view key) {
  const Metadata whole = byte_level_file();
  Metadata file;
  for (const auto& entry : whole.entries()) {
    if (entry.key != key) file.add(entry.key, entry.value);
  }
  return file;
}

Metadata sentence_piece_file() {
  Metadata file;
  file.set("tokenizer.ggml.model", std::string("llama"));
  file.set("tokenizer.ggml.tokens", Array(Strings{"<unk>", "<s>", "</s>", "a"}));
  file.set("tokenizer.ggml.scores", Array(std::vector<float>{0, 0, 0, -1}));
  file.set("tokenizer.ggml.token_type", Array(Ints{2, 3, 3, 1}));
  return file;
}

/// The error that loading gives must be of this kind and name this key.
void expect_error(const Metadata& file, ErrorKind kind, std::string_view key) {
  try {
    (void)Tokenizer::from_metadata(file);
    ADD_FAILURE() << "no error about " << key;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
  }
}

TEST(TokenizerLoader, ReadsAByteLevelFile) {
  const auto tokenizer = Tokenizer::from_metadata(byte_level_file());
  EXPECT_EQ(tokenizer->encode("ab<|im_end|>"), (std::vector<Token>{2, 3}));
  EXPECT_EQ(tokenizer->eos(), 3u);
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->bos(), std::nullopt);
}

TEST(TokenizerLoader, SentencePieceHasTheDefaultsOfItsKind) {
  const auto tokenizer = Tokenizer::from_metadata(sentence_piece_file());
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->bos(), 1u);
  EXPECT_EQ(tokenizer->eos(), 2u);
  EXPECT_EQ(tokenizer->encode("a"), (std::vector<Token>{1, 0, 3}));  // the space prefix has no token here
}

TEST(TokenizerLoader, TheFilesOwnKeysBeatTheDefaults) {
  Metadata file = sentence_piece_file();
  file.set("tokenizer.ggml.add_bos_token", false);
  file.set("tokenizer.ggml.add_eos_token", true);
  file.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(Tokenizer::from_metadata(file)->encode("a"), (std::vector<Token>{3, 2}));
}

TEST(TokenizerLoader, TheNameOfThePreTokenizerMaySetBos) {
  Metadata file = byte_level_file();
  file.set("tokenizer.ggml.pre", std::string("llama-bpe"));
  EXPECT_FALSE(Tokenizer::from_metadata(file)->adds_bos()) << "there is none to add";
  file.set("tokenizer.ggml.bos_token_id", std::uint32_t{3});
  EXPECT_TRUE(Tokenizer::from_metadata(file)->adds_bos());
}

TEST(TokenizerLoader, AFileWithoutAPreTokenizerHasTheDefaultRulesAndNoMismatch) {
  const Metadata file = byte_level_file_without("tokenizer.ggml.pre");
  set_log_level(LogLevel::kOff);
  const auto tokenizer = Tokenizer::from_metadata(file, {.strict = true});
  set_log_level(LogLevel::kWarning);
  EXPECT_EQ(tokenizer->pre_mismatch(), std::nullopt);
  EXPECT_EQ(tokenizer->chunks("a\n\nb").size(), 4u) << "qwen2 would keep the newlines together";
}

TEST(TokenizerLoader, SpecialsOfPhi3SwallowTheSpaceBehindThem) {
  Metadata file = sentence_piece_file();
  file.set("general.name", std::string("Phi-3 mini"));
  file.set("tokenizer.ggml.add_space_prefix", false);
  file.set("tokenizer.ggml.tokens", Array(Strings{"<unk>", "<s>", "<|user|>", "a"}));
  const auto tokenizer = Tokenizer::from_metadata(file);
  EXPECT_EQ(tokenizer->encode_raw("<|user|> \n a", Specials::kRecognise), (std::vector<Token>{2, 3}));
  EXPECT_EQ(tokenizer->encode_raw("<s>  a", Specials::kRecognise).size(), 4u);
}

TEST(TokenizerLoader, KindsThatAreNotDoneAreNamed) {
  for (const char* model : {"bert", "rwkv", "plamo2", "t5", "no_vocab", "nonsense"}) {
    Metadata file = byte_level_file();
    file.set("tokenizer.ggml.model", std::string(model));
    expect_error(file, ErrorKind::kUnsupported, model);
  }
}

TEST(TokenizerLoader, AMissingKeyIsNamed) {
  for (const char* key : {"tokenizer.ggml.model", "tokenizer.ggml.tokens", "tokenizer.ggml.merges"}) {
    expect_error(byte_level_file_without(key), ErrorKind::kBadFile, key);
  }
}

TEST(TokenizerLoader, AKeyOfTheWrongTypeIsNamed) {
  for (const char* key : {"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
                          "tokenizer.ggml.merges", "tokenizer.ggml.scores", "tokenizer.ggml.add_bos_token"}) {
    Metadata file = byte_level_file();
    file.set(key, 1.5);
    expect_error(file, ErrorKind::kBadFile, key);
  }
}

TEST(TokenizerLoader, ArraysOfTheWrongLengthAreNamed) {
  for (const Ints& types : {Ints{1, 1, 1}, Ints{1, 1, 1, 3, 1}, Ints{}}) {
    Metadata file = byte_level_file();
    file.set("tokenizer.ggml.token_type", Array(types));
    expect_error(file, ErrorKind::kBadFile, "tokenizer.ggml.token_type");
  }
  Metadata file = sentence_piece_file();
  file.set("tokenizer.ggml.scores", Array(std::vector<float>{0}));
  expect_error(file, ErrorKind::kBadFile, "tokenizer.ggml.scores");
  file.set("tokenizer.ggml.tokens", Array(Strings{}));
  expect_error(file, ErrorKind::kBadFile, "tokenizer.ggml.tokens");
}

TEST(TokenizerLoader, IdsOutsideTheVocabularyAreNamed) {
  for (const char* key :
       {"bos_token_id", "eos_token_id", "eot_token_id", "eom_token_id", "unknown_token_id", "padding_token_id", "fim_pad_token_id"}) {
    Metadata file = byte_level_file();
    file.set(std::string("tokenizer.ggml.") + key, std::uint32_t{4});
    expect_error(file, ErrorKind::kBadFile, key);
    file.set(std::string("tokenizer.ggml.") + key, std::int32_t{-1});
    expect_error(file, ErrorKind::kBadFile, key);
  }
}

TEST(TokenizerLoader, TypesAndScoresThatMeanNothingAreNamed) {
  Metadata file = byte_level_file();
  file.set("tokenizer.ggml.token_type", Array(Ints{1, 1, 7, 3}));
  expect_error(file, ErrorKind::kBadFile, "tokenizer.ggml.token_type");
  file = sentence_piece_file();
  file.set("tokenizer.ggml.scores", Array(std::vector<float>{0, 0, std::numeric_limits<float>::quiet_NaN(), 0}));
  expect_error(file, ErrorKind::kBadFile, "tokenizer.ggml.scores");
}

TEST(TokenizerLoader, ScoresMayBeIntegers) {
  Metadata file = sentence_piece_file();
  file.set("tokenizer.ggml.scores", Array(Ints{0, 0, 0, -1}));
  EXPECT_EQ(Tokenizer::from_metadata(file)->encode_raw("a", Specials::kAsText).size(), 2u);
}

TEST(TokenizerLoader, APolicyWithoutItsTokenIsAnError) {
  Metadata file = byte_level_file();
  file.set("tokenizer.ggml.add_bos_token", true);
  expect_error(file, ErrorKind::kBadFile, "tokenizer.ggml.bos_token_id");
}

TEST(TokenizerLoader, FillInTheMiddleEndsAreEndTokens) {
  Metadata file = byte_level_file();
  file.set("tokenizer.ggml.fim_pad_token_id", std::uint32_t{1});
  file.set("tokenizer.ggml.fim_pre_token_id", std::uint32_t{0});
  EXPECT_EQ(Tokenizer::from_metadata(file)->end_tokens(), (std::vector<Token>{1, 3}));
}

}  // namespace
}  // namespace quench
