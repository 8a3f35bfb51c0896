#include "quant/random_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace quench {
namespace {

class RandomBlocks : public testing::TestWithParam<FormatInfo> {};

INSTANTIATE_TEST_SUITE_P(Formats, RandomBlocks, testing::ValuesIn(all_formats().begin(), all_formats().end()),
                         [](const auto& param) { return std::string(param.param.name); });

std::vector<std::byte> make(const FormatInfo& info, std::uint64_t seed, std::size_t n_blocks, float magnitude) {
  Xoshiro256 random(seed);
  std::vector<std::byte> blocks(n_blocks * static_cast<std::size_t>(info.block_bytes));
  random_blocks(info.format, random, n_blocks, magnitude, blocks.data());
  return blocks;
}

TEST_P(RandomBlocks, HaveTheAskedDeviationAndNoMean) {
  const FormatInfo& info = GetParam();
  for (const float magnitude : {0.02f, 0.7f}) {
    const std::size_t n_blocks = 65536 / static_cast<std::size_t>(info.block_elements);
    const auto blocks = make(info, 5, n_blocks, magnitude);
    std::vector<float> values(65536);
    info.decode(blocks.data(), n_blocks, values.data());
    double sum = 0.0;
    double squares = 0.0;
    for (const float value : values) {
      ASSERT_TRUE(std::isfinite(value));
      sum += value;
      squares += static_cast<double>(value) * value;
    }
    EXPECT_NEAR(std::sqrt(squares / 65536.0) / magnitude, 1.0, 0.08);
    EXPECT_LT(std::abs(sum / 65536.0) / magnitude, 0.08);
  }
}

TEST_P(RandomBlocks, AreTheSameForTheSameSeedOnly) {
  const FormatInfo& info = GetParam();
  EXPECT_EQ(make(info, 1, 16, 0.1f), make(info, 1, 16, 0.1f));
  EXPECT_NE(make(info, 1, 16, 0.1f), make(info, 2, 16, 0.1f));
}

}  // namespace
}  // namespace quench
