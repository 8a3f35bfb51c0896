#include "engine/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/random.h"

namespace quench {
namespace {

std::vector<Token> letters(std::string_view text) { return {text.begin(), text.end()}; }

/// The longest suffix of `text` that ends earlier in it, by trying all.
std::size_t longest_repeat(std::span<const Token> text) {
  for (std::size_t length = text.size() - 1; length > 0; --length) {
    const auto suffix = text.last(length);
    for (std::size_t begin = 0; begin + length < text.size(); ++begin) {
      if (std::ranges::equal(text.subspan(begin, length), suffix)) return length;
    }
  }
  return 0;
}

TEST(SuffixAutomaton, FindsWhatFollowedTheEndOfTheText) {
  SuffixAutomaton automaton;
  automaton.append(letters("the cat sat; the ca"));
  const SuffixMatch match = automaton.repeated_suffix();
  EXPECT_EQ(match.length, 6u);
  EXPECT_EQ(automaton.tokens()[match.next], static_cast<Token>('t'));
  EXPECT_EQ(match.next, 6u);
}

TEST(SuffixAutomaton, NothingRepeatsInATextOfDifferentTokens) {
  SuffixAutomaton automaton;
  EXPECT_EQ(automaton.repeated_suffix().length, 0u);
  for (Token token = 0; token < 100; ++token) {
    automaton.append(token);
    EXPECT_EQ(automaton.repeated_suffix().length, 0u);
  }
}

TEST(SuffixAutomaton, TheLatestContinuationIsTaken) {
  SuffixAutomaton automaton;
  automaton.append(letters("ab1 ab2 ab3 ab"));
  EXPECT_EQ(automaton.tokens()[automaton.repeated_suffix().next], static_cast<Token>('3'));
}

TEST(SuffixAutomaton, RandomTextsMatchWhatTryingAllFinds) {
  Xoshiro256 random(3);
  for (int round = 0; round < 60; ++round) {
    SuffixAutomaton automaton(round % 2 == 0 ? 0 : 120);
    const std::uint64_t alphabet = 1 + random.below(4);
    for (int i = 0; i < 120; ++i) {
      automaton.append(static_cast<Token>(random.below(alphabet)));
      const auto text = automaton.tokens();
      const SuffixMatch match = automaton.repeated_suffix();
      ASSERT_EQ(match.length, longest_repeat(text));
      if (match.length == 0) continue;
      ASSERT_LT(match.next, text.size());
      ASSERT_TRUE(std::ranges::equal(text.subspan(match.next - match.length, match.length), text.last(match.length)));
    }
  }
}

TEST(SuffixAutomaton, ACursorFollowsAnotherText) {
  SuffixAutomaton automaton;
  automaton.append(letters("int main() { return 0; }"));
  SuffixAutomaton::Cursor cursor;
  for (const Token token : letters("xx main() { r")) automaton.advance(cursor, token);
  const SuffixMatch match = automaton.match(cursor);
  EXPECT_EQ(match.length, 11u);
  EXPECT_EQ(automaton.tokens()[match.next], static_cast<Token>('e'));
  automaton.advance(cursor, 'Q');
  EXPECT_EQ(automaton.match(cursor).length, 0u);
}

TEST(SuffixAutomaton, RandomCursorsMatchWhatTryingAllFinds) {
  Xoshiro256 random(4);
  for (int round = 0; round < 40; ++round) {
    SuffixAutomaton automaton;
    for (int i = 0; i < 100; ++i) automaton.append(static_cast<Token>(random.below(3)));
    const auto text = automaton.tokens();
    std::vector<Token> beside;
    SuffixAutomaton::Cursor cursor;
    for (int i = 0; i < 100; ++i) {
      beside.push_back(static_cast<Token>(random.below(3)));
      automaton.advance(cursor, beside.back());
      std::size_t longest = 0;
      for (std::size_t length = 1; length <= beside.size(); ++length) {
        if (std::ranges::search(text, std::span(beside).last(length)).empty()) break;
        longest = length;
      }
      const SuffixMatch match = automaton.match(cursor);
      ASSERT_EQ(match.length, longest);
      ASSERT_TRUE(std::ranges::equal(text.subspan(match.next - longest, longest), std::span(beside).last(longest)));
    }
  }
}

}  // namespace
}  // namespace quench
