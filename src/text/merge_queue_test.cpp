#include "text/merge_queue.h"

#include <gtest/gtest.h>

#include <queue>

#include "base/random.h"

namespace quench {
namespace {

using Reference = std::priority_queue<MergeEntry, std::vector<MergeEntry>, std::greater<>>;

void expect_same_pop(MergeQueue& queue, Reference& reference) {
  const auto entry = queue.pop();
  if (reference.empty()) {
    ASSERT_FALSE(entry.has_value());
    return;
  }
  ASSERT_TRUE(entry.has_value());
  ASSERT_EQ(entry->rank(), reference.top().rank());
  ASSERT_EQ(entry->at(), reference.top().at());
  reference.pop();
}

TEST(MergeQueue, GivesEntriesInTheOrderOfAPriorityQueueWhateverComesWhen) {
  Xoshiro256 random(1);
  MergeQueue queue;
  for (int round = 0; round < 300; ++round) {
    queue.clear();
    Reference reference;
    // Ranks of one value up to all values, so that equal, later and earlier ones meet.
    const std::uint64_t ranks = std::uint64_t{1} << random.below(33);
    for (std::uint64_t step = 0, steps = random.below(400); step < steps; ++step) {
      if (random.below(5) < 3) {
        const auto rank = static_cast<std::uint32_t>(random.below(std::min<std::uint64_t>(ranks, kNoMerge)));
        const auto at = static_cast<std::uint32_t>(random.below(50));
        queue.push(rank, at);
        reference.push({rank, at});
      } else {
        ASSERT_NO_FATAL_FAILURE(expect_same_pop(queue, reference));
      }
    }
    while (!reference.empty()) ASSERT_NO_FATAL_FAILURE(expect_same_pop(queue, reference));
    EXPECT_FALSE(queue.pop().has_value());
  }
}

TEST(MergeQueue, HoldsTheLowestAndTheHighestRank) {
  MergeQueue queue;
  queue.push(kNoMerge - 1, 7);
  queue.push(0, kNoMerge);
  queue.push(0, 3);
  EXPECT_EQ(queue.pop(), MergeEntry(0, 3));
  queue.push(0, 1);
  EXPECT_EQ(queue.pop(), MergeEntry(0, 1));
  EXPECT_EQ(queue.pop(), MergeEntry(0, kNoMerge));
  EXPECT_EQ(queue.pop(), MergeEntry(kNoMerge - 1, 7));
  EXPECT_EQ(queue.pop(), std::nullopt);
}

}  // namespace
}  // namespace quench
