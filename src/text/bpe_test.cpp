#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "text/tokenizer.h"

namespace quench {
namespace {

using Texts = std::vector<std::string>;

/// The definition: join the best-ranked pair of neighbours, the leftmost of equals, until no rule applies.
Texts merge_by_definition(Texts symbols, const Texts& merges) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::size_t space = merges[i].find(' ');
    ranks.emplace(std::pair(merges[i].substr(0, space), merges[i].substr(space + 1)), i);
  }
  while (true) {
    std::size_t best = merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto rank = ranks.find({symbols[i], symbols[i + 1]});
      if (rank != ranks.end() && rank->second < best) {
        best = rank->second;
        at = i;
      }
    }
    if (best == merges.size()) return symbols;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

Texts byte_characters() {
  Texts texts;
  for (unsigned b = 0; b < 256; ++b) texts.push_back(byte_character(static_cast<unsigned char>(b)));
  return texts;
}

/// A random vocabulary over letters of one, two and three bytes, with merges that cross and split characters.
TokenizerParts random_vocabulary(Xoshiro256& random, const Texts& letters) {
  TokenizerParts parts;
  parts.pre = "gpt-2";
  parts.tokens = byte_characters();
  Texts known;
  for (const std::string& letter : letters) {
    for (const char c : letter) known.push_back(byte_character(static_cast<unsigned char>(c)));
  }
  for (std::size_t i = 0, n = 1 + random.below(40); i < n; ++i) {
    const std::string left = known[random.below(known.size())];
    const std::string right = known[random.below(known.size())];
    if (left.size() + right.size() > 24) continue;
    parts.merges.push_back(left + " " + right);
    known.push_back(left + right);
    if (std::find(parts.tokens.begin(), parts.tokens.end(), left + right) == parts.tokens.end()) parts.tokens.push_back(left + right);
  }
  return parts;
}

TEST(Bpe, EqualsTheDefinitionOnRandomVocabularies) {
  Xoshiro256 random(1);
  const Texts letters = {"a", "b", "\xC3\xA9", "\xE4\xB8\xAD", "\xE6\x96\x87"};
  for (int round = 0; round < 400; ++round) {
    const TokenizerParts parts = random_vocabulary(random, letters);
    const auto tokenizer = Tokenizer::from_parts(parts);
    std::string text;
    // Short pieces, pieces beyond the cache's size, and beyond the flat merge's.
    for (std::uint64_t i = 0, n = 1 + random.below(round % 4 == 0 ? 120 : 20); i < n; ++i) text += letters[random.below(letters.size())];
    Texts symbols;
    for (const char c : text) symbols.push_back(byte_character(static_cast<unsigned char>(c)));
    Texts found;
    for (const Token token : tokenizer->encode_raw(text, Specials::kAsText)) found.emplace_back(tokenizer->token_text(token));
    ASSERT_EQ(found, merge_by_definition(symbols, parts.merges)) << text << " round " << round;
  }
}

struct LetterRules {
  using Symbol = std::uint32_t;
  std::uint64_t seed;
  [[nodiscard]] std::uint32_t rank(Symbol left, Symbol right) const {
    const std::uint64_t hash = hash_mix(left * 31 + seed, right + 17);
    return hash % 3 == 0 ? kNoMerge : static_cast<std::uint32_t>(hash % 50);
  }
  [[nodiscard]] Symbol join(Symbol left, Symbol right, std::uint32_t) const { return left * 7 + right * 13 + 1000; }
};

TEST(Bpe, TheQueueAndTheScanAgree) {
  Xoshiro256 random(2);
  MergeBuffers buffers;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint32_t> symbols(1 + random.below(60));
    for (auto& symbol : symbols) symbol = static_cast<std::uint32_t>(random.below(4));
    const LetterRules rules{random.next()};
    auto scanned = symbols;
    merge_flat(rules, scanned, buffers);
    QueueMerge<LetterRules>(rules, symbols, buffers).run();
    ASSERT_EQ(symbols, scanned);
  }
}

TEST(Bpe, OfARepeatedMergeTheFirstCounts) {
  TokenizerParts parts;
  parts.tokens = byte_characters();
  parts.tokens.insert(parts.tokens.end(), {"ab", "bc"});
  parts.merges = {"a b", "b c", "a b"};
  const auto tokenizer = Tokenizer::from_parts(parts);
  EXPECT_EQ(tokenizer->encode_raw("abc", Specials::kAsText), (std::vector<Token>{256, 'c'}));
}

TEST(Bpe, AMergeThatIsNotTwoTextsIsAnErrorThatNamesIt) {
  for (const char* bad : {"", " ", "a", "ab", "a ", " a"}) {
    TokenizerParts parts;
    parts.tokens = {"a", "b"};
    parts.merges = {"a b", bad};
    try {
      (void)Tokenizer::from_parts(parts);
      ADD_FAILURE() << '"' << bad << '"';
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
      EXPECT_NE(std::string(error.what()).find("tokenizer.ggml.merges: entry 1"), std::string::npos) << error.what();
    }
  }
}

TEST(Bpe, AWholePieceIsATokenWhereTheNameIgnoresMerges) {
  TokenizerParts parts;
  parts.tokens = byte_characters();
  parts.tokens.insert(parts.tokens.end(), {"xyz", "\xC4\xA0xyz"});
  parts.pre = "llama-bpe";
  EXPECT_EQ(Tokenizer::from_parts(parts)->encode_raw("xyz xyz", Specials::kAsText), (std::vector<Token>{256, 257}));
  parts.pre = "qwen2";
  EXPECT_EQ(Tokenizer::from_parts(parts)->encode_raw("xyz xyz", Specials::kAsText).size(), 7u);
}

TEST(Bpe, ASegmentOfALongPieceIsNoWholePiece) {
  // Under ignore_merges the piece "xy" is a token, but the same letters inside a longer piece are only what merges make of them.
  TokenizerParts parts;
  parts.tokens = byte_characters();
  parts.tokens.insert(parts.tokens.end(), {"xy", "ab"});
  parts.merges = {"a b"};
  parts.pre = "llama-bpe";
  const auto tokenizer = Tokenizer::from_parts(parts);
  std::string longer = "xy";
  for (int i = 0; i < 20; ++i) longer += "ab";
  EXPECT_EQ(tokenizer->encode_raw("xy " + longer + " xy", Specials::kAsText).size(), 1u + 1 + 2 + 20 + 3);
}

TEST(Bpe, WordsOfAnyNumberOfIdsComeOutOfTheCacheAsTheyWentIn) {
  // The letters a and b have no merge in these words, and a product that holds each pair of them keeps the words in one piece. More
  // words than the cache has room for, each of them met twice in a row and again when others have taken its place.
  TokenizerParts parts;
  parts.tokens = byte_characters();
  for (const char* product : {"aaz", "abz", "baz", "bbz"}) {
    parts.tokens.emplace_back(product);
    const std::string text = product;
    parts.merges.push_back(text.substr(0, 1) + " " + text.substr(1));
  }
  const auto tokenizer = Tokenizer::from_parts(parts);
  Xoshiro256 random(12);
  std::string text;
  for (int i = 0; i < 60000; ++i) {
    std::string word(1 + random.below(33), 'a');
    for (char& letter : word) letter = random.below(2) == 0 ? 'a' : 'b';
    text.append("\n").append(word).append("\n").append(word);
  }
  const std::vector<Token> first = tokenizer->encode_raw(text, Specials::kAsText);
  ASSERT_EQ(first.size(), text.size());
  // Not EXPECT_EQ, which would work out the shortest edit between two texts of two million bytes.
  EXPECT_TRUE(tokenizer->decode(first) == text);
  EXPECT_TRUE(tokenizer->encode_raw(text, Specials::kAsText) == first);
}

TEST(Bpe, ARunOfOneLetterTakesTimeInProportion) {
  TokenizerParts parts;
  parts.tokens = byte_characters();
  std::string run = "a";
  for (int i = 0; i < 6; ++i) {
    parts.merges.push_back(run + " " + run);
    run += run;
    parts.tokens.push_back(run);
  }
  const auto tokenizer = Tokenizer::from_parts(parts);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokenizer->encode_raw(std::string(1 << 18, 'a'), Specials::kAsText), std::vector<Token>((1 << 18) / 64, 261));
  // A quadratic merge would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace quench
