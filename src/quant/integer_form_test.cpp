#include "quant/integer_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/random.h"
#include "quant/random_blocks.h"

namespace quench {
namespace {

std::vector<FormatInfo> integer_formats() {
  std::vector<FormatInfo> formats;
  for (const FormatInfo& info : all_formats()) {
    if (info.arithmetic != Arithmetic::kFloat) formats.push_back(info);
  }
  return formats;
}

class EveryIntegerFormat : public testing::TestWithParam<FormatInfo> {};

INSTANTIATE_TEST_SUITE_P(Formats, EveryIntegerFormat, testing::ValuesIn(integer_formats()),
                         [](const auto& param) { return std::string(param.param.name); });

/// The value of element i, in double, as the contract in integer_form.h writes it; `magnitude` is the sum of its terms' magnitudes.
struct Value {
  double value;
  double magnitude;
};
Value value_of(const FormatInfo& info, const IntegerBlock& form, std::size_t i) {
  const IntegerShape shape = integer_shape(info.format);
  double product = 0.0;
  double minimum = 0.0;
  if (info.arithmetic == Arithmetic::kSuperBlock) {
    const std::size_t j = i / static_cast<std::size_t>(shape.sub_elements);
    product = static_cast<double>(form.scale[0]) * form.sub_scale[j] * form.quants[i];
    minimum = shape.has_min ? -static_cast<double>(form.min[0]) * form.sub_min[j] : 0.0;
  } else {
    const std::size_t g = i / static_cast<std::size_t>(shape.group_elements);
    product = static_cast<double>(form.scale[g]) * form.quants[i];
    minimum = shape.has_min ? static_cast<double>(form.min[g]) : 0.0;
  }
  return {product + minimum, std::abs(product) + std::abs(minimum)};
}

TEST_P(EveryIntegerFormat, ReconstructsWhatDecodeGives) {
  const FormatInfo& info = GetParam();
  constexpr std::size_t kBlocks = 50;
  const auto block_bytes = static_cast<std::size_t>(info.block_bytes);
  const auto block_elements = static_cast<std::size_t>(info.block_elements);
  Xoshiro256 random(7);
  std::vector<std::byte> blocks(kBlocks * block_bytes);
  random_blocks(info.format, random, kBlocks, 0.5f, blocks.data());
  std::vector<float> decoded(kBlocks * block_elements);
  info.decode(blocks.data(), kBlocks, decoded.data());
  IntegerBlock form{};
  for (std::size_t b = 0; b < kBlocks; ++b) {
    to_integer_form(info.format, blocks.data() + b * block_bytes, form);
    for (std::size_t i = 0; i < block_elements; ++i) {
      const Value expected = value_of(info, form, i);
      ASSERT_LE(std::abs(decoded[b * block_elements + i] - expected.value), 1e-6 * expected.magnitude) << "block " << b << " element " << i;
    }
  }
}

TEST_P(EveryIntegerFormat, WritesOnlyWhatItsShapeNames) {
  const FormatInfo& info = GetParam();
  Xoshiro256 random(3);
  std::vector<std::byte> block(static_cast<std::size_t>(info.block_bytes));
  random_blocks(info.format, random, 1, 1.0f, block.data());
  IntegerBlock form{};
  form.quants.fill(99);
  to_integer_form(info.format, block.data(), form);
  for (auto i = static_cast<std::size_t>(info.block_elements); i < 256; ++i) ASSERT_EQ(form.quants[i], 99) << i;
}

/// Blocks of wholly random bytes visit every scale and quant that a file can hold, sane or not.
TEST_P(EveryIntegerFormat, SuperBlockSumsFitInt32ForAnyBytes) {
  const FormatInfo& info = GetParam();
  if (info.arithmetic != Arithmetic::kSuperBlock) return;
  const auto sub = static_cast<std::size_t>(info.shape.sub_elements);
  Xoshiro256 random(11);
  std::vector<std::byte> block(static_cast<std::size_t>(info.block_bytes));
  std::int64_t largest_scale = 0;
  std::int64_t largest_quant = 0;
  std::int64_t largest_min = 0;
  IntegerBlock form{};
  for (int trial = 0; trial < 500; ++trial) {
    for (std::byte& byte : block) byte = static_cast<std::byte>(random.next() & 255);
    to_integer_form(info.format, block.data(), form);
    for (std::size_t j = 0; j < 256 / sub; ++j) {
      largest_scale = std::max<std::int64_t>(largest_scale, std::abs(form.sub_scale[j]));
      if (info.shape.has_min) largest_min = std::max<std::int64_t>(largest_min, std::abs(form.sub_min[j]));
    }
    for (const std::int8_t q : form.quants) largest_quant = std::max<std::int64_t>(largest_quant, std::abs(static_cast<int>(q)));
  }
  EXPECT_GT(largest_scale * largest_quant, 0);
  EXPECT_LE(largest_scale * largest_quant * 127 * 256, 140'000'000);
  EXPECT_LE(largest_min * 127 * 256, 140'000'000);
}

}  // namespace
}  // namespace quench
