#include "engine/prefix_cache.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/token_pages.h"

namespace quench {
namespace {

TEST(PrefixCache, FindsTheLongestCommonPrefixToTheToken) {
  TokenPages pages(1 << 20);
  const auto system = tokens_from(0, 150);
  pages.keep(system + tokens_from(1000, 100));
  pages.keep(system + tokens_from(2000, 30));
  EXPECT_EQ(pages.prefix.match_length(system + tokens_from(1000, 200)), 250u);
  EXPECT_EQ(pages.prefix.match_length(system + tokens_from(2000, 29)), 179u);
  EXPECT_EQ(pages.prefix.match_length(system + tokens_from(3000, 50)), 150u);
  EXPECT_EQ(pages.prefix.match_length(tokens_from(0, 10)), 10u);
  EXPECT_EQ(pages.prefix.match_length(tokens_from(1, 10)), 0u);
  EXPECT_EQ(pages.prefix.match_length({}), 0u);
}

TEST(PrefixCache, SharesFullPagesAndCopiesOnlyThePartialOne) {
  TokenPages pages(1 << 20);
  const auto prompt = tokens_from(0, 150);
  pages.keep(prompt);
  EXPECT_EQ(pages.cache.used_bytes(), 3 * kPageBytes);
  const auto longer = prompt + tokens_from(500, 10);
  KvSequence sequence = pages.prefix.find(longer);
  EXPECT_EQ(sequence.length(), 150u);
  EXPECT_EQ(pages.cache.used_bytes(), 3 * kPageBytes);
  pages.append(sequence, longer);
  EXPECT_EQ(pages.cache.used_bytes(), 4 * kPageBytes);
  EXPECT_EQ(pages.prefix.match_length(prompt), 150u);
}

TEST(PrefixCache, AdaptersShareNothing) {
  TokenPages pages(1 << 20);
  const auto prompt = tokens_from(0, 100);
  pages.keep(prompt);
  EXPECT_EQ(pages.prefix.match_length(prompt, 1), 0u);
  EXPECT_EQ(pages.prefix.find(prompt, 1).length(), 0u);
}

TEST(PrefixCache, APartialPageGrowsInItsPlace) {
  TokenPages pages(1 << 20);
  const auto turn = tokens_from(0, 70);
  pages.keep(turn);
  pages.keep(turn + tokens_from(100, 20));
  EXPECT_EQ(pages.prefix.stats().pages, 2u);
  EXPECT_EQ(pages.prefix.stats().positions, 90u);
}

TEST(PrefixCache, TheLeastRecentlyUsedLeavesFirst) {
  TokenPages pages(4 * kPageBytes);
  const auto old = tokens_from(0, 128);
  const auto recent = tokens_from(1000, 128);
  pages.keep(old);
  pages.keep(recent);
  EXPECT_EQ(pages.prefix.find(old).length(), 128u);
  ASSERT_TRUE(pages.prefix.make_room(kPageBytes));
  EXPECT_EQ(pages.prefix.match_length(old), 128u);
  EXPECT_EQ(pages.prefix.match_length(recent), 64u);
  EXPECT_EQ(pages.prefix.stats().pages_given_up, 1u);
}

TEST(PrefixCache, PagesInUseNeverLeave) {
  TokenPages pages(4 * kPageBytes);
  const auto used = tokens_from(0, 128);
  pages.keep(used);
  pages.keep(tokens_from(1000, 128));
  const KvSequence sequence = pages.prefix.find(used);
  EXPECT_FALSE(pages.prefix.make_room(3 * kPageBytes));
  EXPECT_EQ(pages.cache.free_bytes(), 2 * kPageBytes);
  EXPECT_EQ(pages.prefix.match_length(used), 128u);
}

TEST(PrefixCache, ForgettingAllLeavesPagesToTheSequencesThatUseThem) {
  TokenPages pages(1 << 20);
  const auto tokens = tokens_from(0, 100);
  pages.keep(tokens);
  pages.keep(tokens_from(1000, 64));
  const KvSequence sequence = pages.prefix.find(tokens);
  pages.prefix.forget_all();
  EXPECT_EQ(pages.cache.used_bytes(), 2 * kPageBytes);
  EXPECT_EQ(pages.prefix.match_length(tokens), 0u);
  EXPECT_EQ(sequence.bytes_needed(10, 10), 0u);
}

TEST(PrefixCache, AWindowedLayerEndsAPrefixOnlyWhereItsPagesAre) {
  TokenPages pages(1 << 20, {0, 70});
  const auto tokens = tokens_from(0, 320);
  // Computed in one step, all windowed pages but the last two are released before they are kept.
  pages.keep(tokens);
  EXPECT_EQ(pages.prefix.match_length(tokens), 320u);
  EXPECT_EQ(pages.prefix.match_length(std::span(tokens).first(300)), 300u);
  // A step at 255 reads from page 2 on, which has no windowed part any more.
  EXPECT_EQ(pages.prefix.match_length(std::span(tokens).first(255)), 0u);
  const auto fork = std::vector<Token>(tokens.begin(), tokens.begin() + 200) + tokens_from(5000, 100);
  EXPECT_EQ(pages.prefix.match_length(fork), 0u);
}

TEST(PrefixCache, WindowedPagesKeptStepByStepServeForks) {
  TokenPages pages(1 << 20, {0, 70});
  const auto tokens = tokens_from(0, 320);
  KvSequence sequence(pages.cache);
  for (std::size_t end = 64; end <= tokens.size(); end += 64) {
    pages.append(sequence, std::vector<Token>(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(end)));
    pages.prefix.insert(tokens, sequence, false);
  }
  const auto fork = std::vector<Token>(tokens.begin(), tokens.begin() + 200) + tokens_from(5000, 100);
  EXPECT_EQ(pages.prefix.match_length(fork), 200u);
  EXPECT_EQ(pages.logits(fork, true), pages.logits(fork, false));
}

TEST(PrefixCache, RandomUseKeepsBudgetAndContents) {
  Xoshiro256 random(7);
  for (const std::vector<std::size_t>& windows : {std::vector<std::size_t>{0}, std::vector<std::size_t>{0, 100}}) {
    TokenPages pages(60 * kPageBytes, windows);
    std::vector<std::vector<Token>> asked{tokens_from(0, 200)};
    std::size_t found = 0;
    for (int round = 0; round < 400; ++round) {
      const auto& base = asked[random.below(asked.size())];
      std::vector<Token> tokens(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(1 + random.below(base.size())));
      const std::size_t more = 1 + random.below(150);
      for (std::size_t i = 0; i < more; ++i) tokens.push_back(static_cast<Token>(random.below(3)));
      tokens.resize(std::min<std::size_t>(tokens.size(), 500));
      asked.push_back(tokens);
      // Both ways at once, and a copy of the last page.
      const std::uint64_t needed = 2 * pages.cache.layout().bytes_for(tokens.size(), 1000) + 4 * kPageBytes;
      ASSERT_TRUE(pages.prefix.make_room(needed));
      ASSERT_EQ(pages.logits(tokens, true), pages.logits(tokens, false)) << "round " << round;
      KvSequence sequence = pages.prefix.find(std::span(tokens).first(tokens.size() - 1));
      found += sequence.length();
      pages.append(sequence, tokens);
      pages.prefix.insert(tokens, sequence, random.below(2) == 0);
      sequence.truncate(0);
      ASSERT_LE(pages.cache.used_bytes(), pages.cache.budget_bytes());
      ASSERT_EQ(pages.prefix.stats().idle_bytes, pages.cache.used_bytes());
    }
    EXPECT_GT(found, 1000u);
    EXPECT_GT(pages.prefix.stats().pages_given_up, 100u);
    pages.prefix.clear();
    EXPECT_EQ(pages.cache.used_bytes(), 0u);
    EXPECT_EQ(pages.prefix.stats().pages, 0u);
  }
}

}  // namespace
}  // namespace quench
