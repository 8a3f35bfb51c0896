#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "text/tokenizer.h"
#include "text/tokenizer_vocab.h"

namespace quench {
namespace {

using Texts = std::vector<std::string>;

const std::string kSpace = "\xE2\x96\x81";

TokenizerParts with_bytes() {
  TokenizerParts parts;
  parts.model = "llama";
  parts.add_space_prefix = false;
  for (unsigned b = 0; b < 256; ++b) parts.tokens.push_back(byte_escape(static_cast<unsigned char>(b)));
  parts.scores.assign(256, 0);
  return parts;
}

void add(TokenizerParts& parts, const std::string& text, float score) {
  if (std::find(parts.tokens.begin(), parts.tokens.end(), text) != parts.tokens.end()) return;
  parts.tokens.push_back(text);
  parts.scores.push_back(score);
}

/// The definition: join the neighbours whose text is the token with the highest score, the leftmost of equals.
Texts merge_by_definition(Texts symbols, const TokenizerParts& parts) {
  const auto score_of = [&](const std::string& text) {
    const auto found = std::find(parts.tokens.begin() + 256, parts.tokens.end(), text);
    return found == parts.tokens.end() ? nullptr : &parts.scores[static_cast<std::size_t>(found - parts.tokens.begin())];
  };
  while (true) {
    const float* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const float* score = score_of(symbols[i] + symbols[i + 1]);
      if (score == nullptr || (best != nullptr && *score <= *best)) continue;
      best = score;
      at = i;
    }
    if (best == nullptr) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  Texts out;
  for (const std::string& symbol : symbols) {
    if (score_of(symbol) != nullptr) {
      out.push_back(symbol);
    } else {
      for (const char c : symbol) out.push_back(byte_escape(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

TEST(Spm, AnotherPretokenizerIsRefusedForThereIsNone) {
  try {
    (void)Tokenizer::from_parts(with_bytes(), {.pre_override = "qwen2"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadRequest);
    EXPECT_NE(std::string(error.what()).find("SentencePiece"), std::string::npos) << error.what();
  }
}

TEST(Spm, EqualsTheDefinitionOnRandomVocabularies) {
  Xoshiro256 random(4);
  const Texts letters = {"a", "b", kSpace, "\xC3\xA9", "\xE4\xB8\xAD", "\xF0\x9F\x98\x80"};
  for (int round = 0; round < 400; ++round) {
    TokenizerParts parts = with_bytes();
    // Few different scores: ties are the rule. Some letters are no tokens at all.
    const auto score = [&] { return static_cast<float>(random.below(5)) - 2.0f; };
    for (const std::string& letter : letters) {
      if (random.below(4) != 0) add(parts, letter, score());
    }
    add(parts, kSpace, score());
    for (std::uint64_t i = 0, n = random.below(50); i < n; ++i) {
      std::string text;
      for (std::uint64_t k = 0, m = 2 + random.below(4); k < m; ++k) text += letters[random.below(letters.size())];
      add(parts, text, score());
    }
    Texts symbols;
    std::string text;
    for (std::uint64_t i = 0, n = 1 + random.below(round % 4 == 0 ? 150 : 20); i < n; ++i) {
      symbols.push_back(letters[random.below(letters.size())]);
      text += symbols.back() == kSpace && random.below(2) == 0 ? " " : symbols.back();
    }
    const auto tokenizer = Tokenizer::from_parts(parts);
    Texts found;
    for (const Token token : tokenizer->encode_raw(text, Specials::kAsText)) found.emplace_back(tokenizer->token_text(token));
    ASSERT_EQ(found, merge_by_definition(symbols, parts)) << text << " round " << round;
  }
}

TEST(Spm, AScoreThatIsNotANumberIsAnError) {
  TokenizerParts parts = with_bytes();
  parts.scores[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW((void)Tokenizer::from_parts(parts), Error);
}

TEST(Spm, InfiniteScoresAndBothZerosAreOrdered) {
  TokenizerParts parts = with_bytes();
  for (const char* letter : {"a", "b", "c", "d"}) add(parts, letter, 0);
  add(parts, "ab", -std::numeric_limits<float>::infinity());
  add(parts, "bc", std::numeric_limits<float>::infinity());
  add(parts, "cd", 0.0f);
  add(parts, "da", -0.0f);
  const auto tokenizer = Tokenizer::from_parts(parts);
  EXPECT_EQ(tokenizer->encode_raw("abc", Specials::kAsText), (std::vector<Token>{256, 261}));
  EXPECT_EQ(tokenizer->encode_raw("ab", Specials::kAsText), (std::vector<Token>{260}));
  EXPECT_EQ(tokenizer->encode_raw("cda", Specials::kAsText), (std::vector<Token>{262, 256}));  // equal scores: the leftmost
}

TEST(Spm, ARunOfOneLetterTakesTimeInProportion) {
  TokenizerParts parts = with_bytes();
  for (std::size_t length = 1; length <= 16; ++length) add(parts, std::string(length, 'a'), -static_cast<float>(length));
  const auto tokenizer = Tokenizer::from_parts(parts);
  const auto start = std::chrono::steady_clock::now();
  const std::string text(200000, 'a');
  EXPECT_EQ(tokenizer->decode(tokenizer->encode_raw(text, Specials::kAsText)), text);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace quench
