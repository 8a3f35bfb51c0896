#include "engine/dry_breakers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "engine/tiny_model.h"

namespace quench {
namespace {

TEST(DryBreakers, EverySequenceSpellsItsText) {
  const auto& tokenizer = TinyModel::of("qwen3").tokenizer();
  const std::vector<std::string> texts{"\n", "he s"};
  const auto sequences = dry_breaker_sequences(tokenizer, texts);
  ASSERT_FALSE(sequences.empty());
  for (const auto& sequence : sequences) {
    const auto spelt = tokenizer.decode(sequence);
    EXPECT_TRUE(std::ranges::any_of(texts, [&](const std::string& text) { return spelt.find(text) != std::string::npos; })) << spelt;
  }
  const auto line_feed = tokenizer.encode_raw("\n", Specials::kAsText);
  ASSERT_EQ(line_feed.size(), 1u);
  EXPECT_NE(std::ranges::find(sequences, line_feed), sequences.end());
  const bool has_tail = std::ranges::any_of(sequences, [](const auto& sequence) { return sequence.size() > 1; });
  EXPECT_TRUE(has_tail);
}

TEST(DryBreakers, RemembersTheLastTextsAndNoOthers) {
  const auto& tokenizer = TinyModel::of("qwen3").tokenizer();
  DryBreakers breakers(tokenizer);
  const std::vector<std::string> none;
  const std::vector<std::string> one{"he s"};
  EXPECT_TRUE(breakers.sequences(none).empty());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(breakers.sequences(one), dry_breaker_sequences(tokenizer, one));
  EXPECT_THROW(static_cast<void>(breakers.sequences(std::vector<std::string>{""})), Error);
  EXPECT_EQ(breakers.sequences(one), dry_breaker_sequences(tokenizer, one));
  EXPECT_EQ(breakers.sequences(default_dry_breakers()), dry_breaker_sequences(tokenizer, default_dry_breakers()));
}

TEST(DryBreakers, AnEmptyOrHugeTextIsAnError) {
  const auto& tokenizer = TinyModel::of("qwen3").tokenizer();
  EXPECT_THROW(static_cast<void>(dry_breaker_sequences(tokenizer, std::vector<std::string>{""})), Error);
  EXPECT_THROW(static_cast<void>(dry_breaker_sequences(tokenizer, std::vector<std::string>{std::string(257, 'x')})), Error);
  EXPECT_EQ(default_dry_breakers().size(), 4u);
}

}  // namespace
}  // namespace quench
