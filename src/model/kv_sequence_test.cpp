#include "model/kv_sequence.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace quench {
namespace {

constexpr std::size_t kHeadDim = 8;

/// Two layers that see everything (a page: 8 KiB), one with a window (4 KiB), two KV heads.
KvLayout layout_with_window(std::size_t window) {
  return {.n_kv_heads = 2,
          .head_dim = kHeadDim,
          .groups = {{.window = 0, .n_layers = 2}, {.window = window, .n_layers = 1}},
          .layers = {{.group = 0, .slot = 0}, {.group = 1, .slot = 0}, {.group = 0, .slot = 1}}};
}

constexpr std::uint64_t kFullPage = 2 * 2 * 2 * 64 * kHeadDim * 2;
constexpr std::uint64_t kWindowPage = kFullPage / 2;

void append(KvSequence& sequence, std::size_t n) {
  sequence.prepare(n);
  sequence.advance(n);
}

std::string message_of(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(KvLayout, CountsBytes) {
  const KvLayout layout = layout_with_window(100);
  EXPECT_EQ(layout.page_bytes(0), kFullPage);
  EXPECT_EQ(layout.page_bytes(1), kWindowPage);
  EXPECT_EQ(layout.bytes_per_position(), (kFullPage + kWindowPage) / 64);
  EXPECT_EQ(layout.bytes_for(64, 64), kFullPage + kWindowPage);
  EXPECT_EQ(layout.bytes_for(64'000, 28), 1000 * kFullPage + 3 * kWindowPage);
}

TEST(KvSequence, PreparingDoesNotAdvance) {
  KvCache cache(layout_with_window(100), {.budget_bytes = 1 << 20, .context = 1000});
  KvSequence sequence(cache);
  sequence.prepare(10);
  EXPECT_EQ(sequence.length(), 0u);
  sequence.prepare(10);
  EXPECT_EQ(cache.pages_in_use(0), 1u);
  sequence.advance(10);
  EXPECT_EQ(sequence.length(), 10u);
}

TEST(KvSequence, PagesBehindTheWindowAreReleased) {
  KvCache cache(layout_with_window(100), {.budget_bytes = 1 << 20, .context = 2000});
  KvSequence sequence(cache);
  for (int i = 0; i < 1000; ++i) append(sequence, 1);
  EXPECT_EQ(cache.pages_in_use(0), 16u);
  // The step at 1000 sees 901 to 1000: pages 14 and 15.
  EXPECT_EQ(cache.pages_in_use(1), 2u);
  EXPECT_EQ(cache.used_bytes(), 16 * kFullPage + 2 * kWindowPage);
}

TEST(KvSequence, TruncationGivesPagesBack) {
  KvCache cache(layout_with_window(1000), {.budget_bytes = 1 << 20, .context = 1000});
  KvSequence sequence(cache);
  append(sequence, 300);
  sequence.truncate(128);
  EXPECT_EQ(sequence.length(), 128u);
  EXPECT_EQ(cache.pages_in_use(0), 2u);
  sequence.truncate(0);
  EXPECT_EQ(cache.used_bytes(), 0u);
}

TEST(KvSequence, TruncationBeyondTheLengthNamesBoth) {
  KvCache cache(layout_with_window(100), {.budget_bytes = 1 << 20, .context = 1000});
  KvSequence sequence(cache);
  append(sequence, 30);
  EXPECT_EQ(message_of([&] { sequence.truncate(31); }, ErrorKind::kBadRequest),
            "kv cache: cannot truncate to 31 positions, the sequence holds 30");
}

TEST(KvSequence, TruncationIntoReleasedPagesIsRefused) {
  KvCache cache(layout_with_window(100), {.budget_bytes = 1 << 20, .context = 2000});
  KvSequence sequence(cache);
  append(sequence, 500);
  // The step at 500 sees from 401: pages from 6 (position 384) are kept, enough for a length of 384 + 99.
  EXPECT_EQ(sequence.earliest_truncation(), 483u);
  EXPECT_EQ(message_of([&] { sequence.truncate(482); }, ErrorKind::kBadRequest),
            "kv cache: cannot truncate to 482 positions, the sliding window keeps what a length of 483 or more needs; truncate to 0 and "
            "start over");
  sequence.truncate(483);
  sequence.truncate(0);
  EXPECT_EQ(cache.used_bytes(), 0u);
}

TEST(KvSequence, TheContextIsALimitWithBothNumbers) {
  KvCache cache(layout_with_window(100), {.budget_bytes = 1 << 20, .context = 100});
  KvSequence sequence(cache);
  append(sequence, 60);
  EXPECT_EQ(message_of([&] { sequence.prepare(41); }, ErrorKind::kBadRequest),
            "context: 60 positions are used and 41 more asked for, together 101, but the context holds 100");
  EXPECT_EQ(sequence.length(), 60u);
  append(sequence, 40);
}

TEST(KvSequence, TheBudgetIsALimitBeforeAnythingChanges) {
  const std::uint64_t budget = 3 * (kFullPage + kWindowPage);
  KvCache cache(layout_with_window(0), {.budget_bytes = budget, .context = 10'000});
  KvSequence first(cache);
  append(first, 128);
  KvSequence second(cache);
  const std::string full = message_of([&] { second.prepare(65); }, ErrorKind::kOutOfMemory);
  EXPECT_NE(full.find(std::to_string(2 * (kFullPage + kWindowPage)) + " bytes"), std::string::npos) << full;
  EXPECT_NE(full.find(std::to_string(kFullPage + kWindowPage) + " bytes"), std::string::npos) << full;
  EXPECT_EQ(cache.used_bytes(), 2 * (kFullPage + kWindowPage));
  append(second, 64);
  // No other sequence could make room for this one.
  (void)message_of([&] { first.check_room(1000, 64); }, ErrorKind::kBadRequest);
}

TEST(KvSequence, AWindowNeedsRoomForItsWindowOnly) {
  KvCache cache(layout_with_window(64), {.budget_bytes = 160 * kFullPage + 4 * kWindowPage, .context = 10'000});
  KvSequence sequence(cache);
  sequence.check_room(10'000, 64);
  for (int i = 0; i < 100; ++i) append(sequence, 100);
  EXPECT_EQ(sequence.length(), 10'000u);
}

TEST(KvSequence, UnusedPagesOfOneGroupMakeRoomForAnother) {
  KvCache cache(layout_with_window(64), {.budget_bytes = 4 * kFullPage + 4 * kWindowPage, .context = 10'000});
  {
    KvSequence sequence(cache);
    append(sequence, 256);
  }
  EXPECT_EQ(cache.used_bytes(), 0u);
  KvSequence sequence(cache);
  for (int i = 0; i < 320; ++i) append(sequence, 1);
  EXPECT_EQ(cache.pages_in_use(0), 5u);
}

TEST(KvSequence, AForkSharesPagesAndCopiesThePartialOneOnAppend) {
  KvCache cache(layout_with_window(0), {.budget_bytes = 1 << 20, .context = 1000});
  KvSequence original(cache);
  original.prepare(70);
  std::fill_n(cache.keys(0, original.page(0, 1), 0), 2 * cache.layout().head_bytes(), std::byte{7});
  original.advance(70);
  KvSequence fork = original.fork();
  EXPECT_EQ(cache.pages_in_use(0), 2u);

  fork.prepare(1);
  EXPECT_EQ(fork.page(0, 0), original.page(0, 0));
  EXPECT_NE(fork.page(0, 1), original.page(0, 1));
  EXPECT_EQ(cache.keys(0, fork.page(0, 1), 0)[5], std::byte{7});
  cache.keys(0, fork.page(0, 1), 0)[5] = std::byte{9};
  EXPECT_EQ(cache.keys(0, original.page(0, 1), 0)[5], std::byte{7});
  fork.advance(1);
  // Now each has its own partial page: nothing is copied again.
  original.prepare(1);
  EXPECT_EQ(cache.pages_in_use(0), 3u);
}

TEST(KvSequence, AForkOutlivesItsOriginal) {
  KvCache cache(layout_with_window(0), {.budget_bytes = 1 << 20, .context = 1000});
  auto original = std::make_unique<KvSequence>(cache);
  append(*original, 100);
  KvSequence fork = original->fork();
  original.reset();
  EXPECT_EQ(cache.pages_in_use(0), 2u);
  KvSequence moved = std::move(fork);
  EXPECT_EQ(moved.length(), 100u);
  moved.truncate(0);
  EXPECT_EQ(cache.used_bytes(), 0u);
}

}  // namespace
}  // namespace quench
