#include "text/special_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "base/random.h"

namespace quench {

static bool operator==(const Fragment& a, const Fragment& b) { return a.begin == b.begin && a.end == b.end && a.token == b.token; }
static std::ostream& operator<<(std::ostream& out, const Fragment& f) { return out << f.begin << ".." << f.end << ":" << f.token; }

namespace {

struct Case {
  std::vector<std::string> texts;
  std::vector<TokenType> types;
  std::vector<SpecialStrip> strips;
};

/// The definition: for each special, longest first, every occurrence in the text that is left.
std::vector<Fragment> partition_by_definition(const Case& c, std::string_view text, bool trusted) {
  std::vector<Token> order;
  for (Token t = 0; t < c.texts.size(); ++t) {
    const bool first = std::find(c.texts.begin(), c.texts.end(), c.texts[t]) - c.texts.begin() == static_cast<std::ptrdiff_t>(t);
    if (first && c.types[t] != TokenType::kNormal && (trusted || c.types[t] == TokenType::kUserDefined)) order.push_back(t);
  }
  // The longest first, the lowest id among equals.
  std::ranges::sort(
      order, [&](Token a, Token b) { return c.texts[a].size() != c.texts[b].size() ? c.texts[a].size() > c.texts[b].size() : a < b; });
  std::vector<Fragment> parts;
  if (!text.empty()) parts.push_back({0, text.size(), kNoToken});
  for (const Token token : order) {
    SpecialStrip strip;
    for (const auto& s : c.strips) strip = s.token == token ? s : strip;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].token != kNoToken) continue;
      const Fragment part = parts[i];
      const std::size_t at = text.substr(0, part.end).find(c.texts[token], part.begin);
      if (at == std::string_view::npos) continue;
      std::size_t left = at;
      std::size_t right = at + c.texts[token].size();
      while (strip.left && left > part.begin && text[left - 1] == ' ') --left;
      std::vector<Fragment> replaced;
      if (left > part.begin) replaced.push_back({part.begin, left, kNoToken});
      replaced.push_back({at, right, token});
      while (strip.right && right < part.end && text[right] == ' ') ++right;
      if (right < part.end) replaced.push_back({right, part.end, kNoToken});
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(i), replaced.begin(), replaced.end());
      i += left > part.begin ? 1 : 0;
    }
  }
  return parts;
}

std::vector<Fragment> partition(const Case& c, std::string_view text, bool trusted) {
  const Vocab vocab(c.texts, c.types, TextForm::kByteAlphabet);
  const SpecialTokens specials(vocab, c.strips);
  const TrustedRange all{0, text.size()};
  std::vector<Fragment> out;
  specials.partition(text, {&all, trusted ? std::size_t{1} : 0}, out);
  return out;
}

TEST(SpecialTokens, EqualTheDefinitionOnRandomOverlappingTexts) {
  Xoshiro256 random(3);
  const auto letters = [&](std::size_t longest) {
    std::string text(1 + random.below(longest), 'a');
    for (char& c : text) c = "ab "[random.below(3)];
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    Case c;
    for (std::size_t i = 0, n = 1 + random.below(6); i < n; ++i) {
      c.texts.push_back(letters(4));
      c.types.push_back(std::array{TokenType::kControl, TokenType::kUserDefined, TokenType::kNormal, TokenType::kUnknown}[random.below(4)]);
      if (round % 3 == 0) c.strips.push_back({.token = static_cast<Token>(i), .left = random.below(2) == 0, .right = random.below(2) == 0});
    }
    const std::string text = letters(24);
    for (const bool trusted : {true, false}) {
      ASSERT_EQ(partition(c, text, trusted), partition_by_definition(c, text, trusted)) << "\"" << text << "\" round " << round;
    }
  }
}

TEST(SpecialTokens, AControlTokenCountsOnlyWhereAllOfItIsTrusted) {
  const Case c{{"<x>"}, {TokenType::kControl}, {}};
  const Vocab vocab(c.texts, c.types, TextForm::kByteAlphabet);
  const SpecialTokens specials(vocab, {});
  const std::vector<TrustedRange> trusted = {{3, 6}, {8, 12}};
  std::vector<Fragment> out;
  specials.partition("<x><x><x><x>", trusted, out);
  EXPECT_EQ(out, (std::vector<Fragment>{{0, 3, kNoToken}, {3, 6, 0}, {6, 9, kNoToken}, {9, 12, 0}}));
}

TEST(SpecialTokens, AHundredThousandNewlinesTakeTheLongestTokenFirst) {
  Case c;
  for (std::size_t length = 1; length <= 31; ++length) {
    c.texts.emplace_back(length, '\n');
    c.types.push_back(TokenType::kUserDefined);
  }
  const std::string text(100000, '\n');
  const std::vector<Fragment> out = partition(c, text, false);
  ASSERT_EQ(out.size(), 100000u / 31 + 1);
  EXPECT_EQ(out.front().token, 30u);
  EXPECT_EQ(out.back().token, static_cast<Token>(100000 % 31 - 1));
}

TEST(SpecialTokens, ATextWithoutSpecialsIsOneFragment) {
  const Case c{{"<x>", ""}, {TokenType::kControl, TokenType::kControl}, {}};
  EXPECT_EQ(partition(c, "plain <x text", true), (std::vector<Fragment>{{0, 13, kNoToken}}));
  EXPECT_TRUE(partition(c, "", true).empty());
}

}  // namespace
}  // namespace quench
