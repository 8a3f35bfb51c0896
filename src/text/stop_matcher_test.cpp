#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace quench {
namespace {

TEST(StopMatcher, TextPassesAtOnceUnlessItMayBecomeAStop) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.push("hello E"), "hello ");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("Joy"), "ENJoy");
  EXPECT_EQ(matcher.push("E"), "");
  EXPECT_EQ(matcher.flush(), "E");
  EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcher, AStopAcrossPiecesNeverLeaks) {
  StopMatcher matcher({"</s>"});
  EXPECT_EQ(matcher.push("answer<"), "answer");
  EXPECT_EQ(matcher.push("/"), "");
  EXPECT_EQ(matcher.push("s>and more"), "");
  EXPECT_EQ(matcher.matched(), 0u);
  EXPECT_EQ(matcher.push("later"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, TheFirstStopToBeCompleteWinsThenTheLongest) {
  StopMatcher matcher({"bc", "abc", "c"});
  EXPECT_EQ(matcher.push("xabcd"), "x");
  EXPECT_EQ(matcher.matched(), 1u);
  StopMatcher shorter({"abcd", "b"});
  EXPECT_EQ(shorter.push("xabcd"), "xa");
  EXPECT_EQ(shorter.matched(), 1u);
}

TEST(StopMatcher, AStopThatOverlapsItselfIsFound) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.push("aa"), "");
  EXPECT_EQ(matcher.push("a"), "a");
  EXPECT_EQ(matcher.push("b"), "");
  EXPECT_EQ(matcher.matched(), 0u);
}

TEST(StopMatcher, WithoutStopsEverythingPasses) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.push("anything"), "anything");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, AnEmptyStopIsAnError) { EXPECT_THROW(StopMatcher({"x", ""}), Error); }

/// What comes out when the text arrives byte by byte: the definition.
std::string by_bytes(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const auto& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST(StopMatcher, ThePiecesDoNotMatter) {
  Xoshiro256 random(7);
  const auto random_text = [&](std::size_t longest) {
    std::string text(1 + random.below(longest), 'a');
    for (auto& letter : text) letter = static_cast<char>('a' + random.below(2));
    return text;
  };
  for (int round = 0; round < 10000; ++round) {
    const std::vector<std::string> stops{random_text(6), random_text(6), random_text(3) + "aab"};
    const std::string text = random_text(30);
    StopMatcher matcher(stops);
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const auto size = 1 + random.below(5);
      out += matcher.push(text.substr(at, size));
      at += size;
    }
    out += matcher.flush();
    const auto wanted = by_bytes(stops, text);
    ASSERT_EQ(out, wanted) << text;
    ASSERT_EQ(matcher.matched().has_value(), wanted.size() < text.size());
  }
}

}  // namespace
}  // namespace quench
