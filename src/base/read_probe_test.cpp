#include "base/read_probe.h"

#include <gtest/gtest.h>

namespace quench {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(ReadProbe, ReadsEveryWordOnceWithAnyNumberOfThreads) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    const ReadProbe probe(3 * kMiB, pool);
    EXPECT_EQ(probe.size_bytes(), 3 * kMiB);
    for (int pass = 0; pass < 2; ++pass) {
      const ReadProbe::Pass read = probe.read(pool);
      EXPECT_EQ(read.sum, probe.expected_sum());
      EXPECT_GT(read.bytes_per_second, 0.0);
    }
  }
}

TEST(ReadProbe, TheExpectedSumTellsSizesApart) {
  ThreadPool pool(1);
  EXPECT_NE(ReadProbe(kMiB, pool).expected_sum(), ReadProbe(2 * kMiB, pool).expected_sum());
  EXPECT_NE(ReadProbe(kMiB, pool).expected_sum(), 0u);
}

TEST(ReadProbe, SizeFollowsTheCacheAndTheMemoryThatIsLeft) {
  EXPECT_EQ(read_probe_bytes(32 * kMiB, 64 * 1024 * kMiB), 1024 * kMiB);
  EXPECT_EQ(read_probe_bytes(384 * kMiB, 64 * 1024 * kMiB), 8 * 384 * kMiB);
  EXPECT_EQ(read_probe_bytes(32 * kMiB, 1024 * kMiB), 256 * kMiB);
  EXPECT_EQ(read_probe_bytes(0, 0), 0u);
}

}  // namespace
}  // namespace quench
