#include "quant/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "quant/integer_form.h"

namespace quench {
namespace {

struct Golden {
  std::size_t n_blocks = 0;
  std::vector<std::byte> blocks;
  std::vector<float> values;
};

Golden read_golden(const FormatInfo& info) {
  const std::string path = std::string(QUENCH_SOURCE_DIR) + "/tests/golden/quant/" + std::string(info.name) + ".bin";
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  Golden golden;
  if (bytes.size() < 4) return golden;
  std::uint32_t n_blocks = 0;
  std::memcpy(&n_blocks, bytes.data(), 4);
  const std::size_t block_bytes = n_blocks * static_cast<std::size_t>(info.block_bytes);
  const std::size_t n_values = n_blocks * static_cast<std::size_t>(info.block_elements);
  if (bytes.size() != 4 + block_bytes + 4 * n_values) return golden;
  golden.n_blocks = n_blocks;
  golden.blocks.resize(block_bytes);
  golden.values.resize(n_values);
  std::memcpy(golden.blocks.data(), bytes.data() + 4, block_bytes);
  std::memcpy(golden.values.data(), bytes.data() + 4 + block_bytes, 4 * n_values);
  return golden;
}

bool same_bits_or_both_nan(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

class EveryFormat : public testing::TestWithParam<FormatInfo> {};

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, testing::ValuesIn(all_formats().begin(), all_formats().end()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(EveryFormat, DecodesTheGoldenBlocksBitForBit) {
  const FormatInfo& info = GetParam();
  const Golden golden = read_golden(info);
  ASSERT_GE(golden.n_blocks, 20u) << "golden file missing or of the wrong size";
  std::vector<float> decoded(golden.values.size());
  info.decode(golden.blocks.data(), golden.n_blocks, decoded.data());
  std::size_t finite = 0;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    ASSERT_TRUE(same_bits_or_both_nan(decoded[i], golden.values[i]))
        << "block " << i / static_cast<std::size_t>(info.block_elements) << " element " << i % static_cast<std::size_t>(info.block_elements)
        << ": " << decoded[i] << " instead of " << golden.values[i];
    finite += std::isfinite(decoded[i]) ? 1 : 0;
  }
  EXPECT_GT(finite, decoded.size() / 2);
}

TEST_P(EveryFormat, IsFoundByNumberAndByNameInAnyCase) {
  const FormatInfo& info = GetParam();
  EXPECT_EQ(&format_info(info.format), &*std::find_if(all_formats().begin(), all_formats().end(),
                                                      [&](const FormatInfo& other) { return other.format == info.format; }));
  EXPECT_EQ(format_from_type_number(static_cast<std::uint32_t>(info.format)), info.format);
  std::string upper(info.name);
  std::string lower(info.name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  EXPECT_EQ(format_from_name(info.name), info.format);
  EXPECT_EQ(format_from_name(upper), info.format);
  EXPECT_EQ(format_from_name(lower), info.format);
}

TEST_P(EveryFormat, RowBytesCountsWholeBlocksOnly) {
  const FormatInfo& info = GetParam();
  const auto elements = static_cast<std::uint64_t>(info.block_elements);
  EXPECT_EQ(row_bytes(info.format, 0), 0u);
  EXPECT_EQ(row_bytes(info.format, 3 * elements), 3u * static_cast<std::uint64_t>(info.block_bytes));
  if (elements > 1) {
    EXPECT_EQ(row_bytes(info.format, 3 * elements - 1), std::nullopt);
  }
}

TEST_P(EveryFormat, HasAShapeThatItsArithmeticAllows) {
  const FormatInfo& info = GetParam();
  const IntegerShape shape = info.shape;
  if (info.arithmetic == Arithmetic::kFloat) {
    EXPECT_EQ(info.block_elements, 1);
    EXPECT_EQ(info.unpack, nullptr);
    return;
  }
  ASSERT_NE(info.unpack, nullptr);
  EXPECT_EQ(shape.block_elements, info.block_elements);
  EXPECT_EQ(shape.block_elements % shape.group_elements, 0);
  EXPECT_EQ(shape.group_elements % shape.sub_elements, 0);
  if (info.arithmetic == Arithmetic::kSuperBlock) {
    EXPECT_EQ(shape.group_elements, 256);
    EXPECT_TRUE(shape.sub_elements == 16 || shape.sub_elements == 32);
  } else {
    EXPECT_EQ(shape.sub_elements, shape.group_elements);
    EXPECT_LE(shape.block_elements / shape.group_elements, 8);
  }
}

TEST(FormatTable, HoldsEachFormatOnceInAscendingOrder) {
  std::uint32_t previous = 0;
  for (const FormatInfo& info : all_formats()) {
    const auto number = static_cast<std::uint32_t>(info.format);
    EXPECT_TRUE(&info == &all_formats().front() || number > previous) << info.name;
    previous = number;
  }
  EXPECT_EQ(all_formats().size(), 28u);
}

TEST(FormatTable, RefusesNumbersAndNamesThatMeanNothing) {
  for (const std::uint32_t number : {4u, 5u, 9u, 15u, 24u, 28u, 31u, 36u, 43u, 255u, 0xFFFFFFFFu}) {
    EXPECT_EQ(format_from_type_number(number), std::nullopt) << number;
  }
  for (const char* name : {"", "q", "q4", "q4_K_M", "q8_1", "q4_0 ", "f32x"}) EXPECT_EQ(format_from_name(name), std::nullopt) << name;
}

TEST(FormatTable, RowBytesThatDoNotFitAreNothing) {
  EXPECT_EQ(row_bytes(Format::kF32, 0xFFFFFFFFFFFFFFFFu), std::nullopt);
  EXPECT_EQ(row_bytes(Format::kQ5_0, 1ull << 62), ((1ull << 62) / 32) * 22);
  EXPECT_EQ(row_bytes(Format::kQ8_0, 0xFFFFFFFFFFFFFFE0u), std::nullopt);
}

}  // namespace
}  // namespace quench
