#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "base/random.h"
#include "quant/format.h"
#include "quant/scale_search.h"

namespace quench {
namespace {

std::vector<float> gaussian(std::size_t n, std::uint64_t seed) {
  Xoshiro256 random(seed);
  std::vector<float> values(n);
  for (float& value : values) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - random.uniform()));
    value = static_cast<float>(0.05 * radius * std::cos(2.0 * std::numbers::pi * random.uniform()));
  }
  return values;
}

std::vector<std::byte> encode(const FormatInfo& info, const std::vector<float>& values) {
  const std::size_t n_blocks = values.size() / static_cast<std::size_t>(info.block_elements);
  std::vector<std::byte> blocks(n_blocks * static_cast<std::size_t>(info.block_bytes));
  info.encode(values.data(), n_blocks, blocks.data());
  return blocks;
}

std::vector<float> decode(const FormatInfo& info, const std::vector<std::byte>& blocks) {
  const std::size_t n_blocks = blocks.size() / static_cast<std::size_t>(info.block_bytes);
  std::vector<float> values(n_blocks * static_cast<std::size_t>(info.block_elements));
  info.decode(blocks.data(), n_blocks, values.data());
  return values;
}

/// Root of (squared error / squared values).
double relative_error(const std::vector<float>& values, const std::vector<float>& decoded) {
  double error = 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - decoded[i];
    error += difference * difference;
    squares += static_cast<double>(values[i]) * values[i];
  }
  return std::sqrt(error / squares);
}

/// Relative error that the encoders reach on Gaussian values, plus 3 %.
const std::map<std::string, double> kBounds = {
    {"f32", 0.0},       {"f16", 0.00022},  {"bf16", 0.0017},  {"q8_0", 0.0055},  {"q5_0", 0.0414},  {"q5_1", 0.0348}, {"q4_0", 0.0835},
    {"q4_1", 0.0720},   {"q6_K", 0.0177},  {"q5_K", 0.0368},  {"q4_K", 0.0735},  {"q3_K", 0.1481},  {"q2_K", 0.2745}, {"iq4_nl", 0.0749},
    {"iq4_xs", 0.0757}, {"mxfp4", 0.1155}, {"nvfp4", 0.0901}, {"tq1_0", 0.4485}, {"tq2_0", 0.4485}, {"q2_0", 0.3614}, {"q1_0", 0.6206}};

std::vector<FormatInfo> formats_with_encoder() {
  std::vector<FormatInfo> formats;
  for (const FormatInfo& info : all_formats()) {
    if (info.encode != nullptr) formats.push_back(info);
  }
  return formats;
}

class EveryEncoder : public testing::TestWithParam<FormatInfo> {};

INSTANTIATE_TEST_SUITE_P(Formats, EveryEncoder, testing::ValuesIn(formats_with_encoder()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(EveryEncoder, KeepsGaussianValuesWithinItsBound) {
  const FormatInfo& info = GetParam();
  const auto values = gaussian(16384, 9);
  const double error = relative_error(values, decode(info, encode(info, values)));
  ASSERT_TRUE(kBounds.contains(std::string(info.name)));
  EXPECT_LE(error, kBounds.at(std::string(info.name)));
  RecordProperty("relative_error", std::to_string(error));
}

TEST_P(EveryEncoder, EncodesZerosAsZeros) {
  const FormatInfo& info = GetParam();
  for (const float value : decode(info, encode(info, std::vector<float>(256, 0.0f)))) ASSERT_EQ(value, 0.0f);
}

TEST_P(EveryEncoder, GivesFiniteBlocksForTinyAndHugeAndOneSidedValues) {
  const FormatInfo& info = GetParam();
  const auto base = gaussian(256, 4);
  for (const float scale : {1e-44f, 1e-30f, 1e-7f, 1e4f, 1e7f}) {
    for (const bool one_sided : {false, true}) {
      std::vector<float> values(256);
      std::transform(base.begin(), base.end(), values.begin(), [&](float x) { return scale * (one_sided ? std::abs(x) : x); });
      for (const float value : decode(info, encode(info, values))) ASSERT_TRUE(std::isfinite(value)) << scale;
    }
  }
}

/// Formats whose scale is found again from the decoded values.
TEST(Encode, OfDecodedValuesGivesTheSameValues) {
  for (const Format format : {Format::kF32, Format::kF16, Format::kBF16, Format::kQ8_0, Format::kTq1_0, Format::kTq2_0, Format::kQ1_0}) {
    const FormatInfo& info = format_info(format);
    const auto once = decode(info, encode(info, gaussian(4096, 2)));
    EXPECT_EQ(decode(info, encode(info, once)), once) << info.name;
  }
}

TEST(Encode, TernaryFormatsKeepTernaryValuesExactly) {
  Xoshiro256 random(6);
  std::vector<float> values(512);
  for (float& value : values) value = 0.375f * (static_cast<float>(random.below(3)) - 1.0f);
  for (const Format format : {Format::kTq1_0, Format::kTq2_0, Format::kQ2_0}) {
    const FormatInfo& info = format_info(format);
    EXPECT_EQ(decode(info, encode(info, values)), values) << info.name;
  }
}

TEST(Quantize, RoundsToNearestEvenAndClamps) {
  EXPECT_EQ(quantize(0.5f, -8, 7), 0);
  EXPECT_EQ(quantize(1.5f, -8, 7), 2);
  EXPECT_EQ(quantize(-2.5f, -8, 7), -2);
  EXPECT_EQ(quantize(-2.51f, -8, 7), -3);
  EXPECT_EQ(quantize(1e30f, -8, 7), 7);
  EXPECT_EQ(quantize(-1e30f, -8, 7), -8);
  EXPECT_EQ(quantize(std::nanf(""), -8, 7), -8);
}

}  // namespace
}  // namespace quench
