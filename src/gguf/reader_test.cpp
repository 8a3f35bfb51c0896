#include "gguf/reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "gguf/split_name.h"
#include "gguf/writer.h"

namespace quench::gguf {
namespace {

const std::filesystem::path kGood = std::filesystem::path(QUENCH_SOURCE_DIR) / "tests/corpus/gguf/good";

TEST(GgufReader, GivesTensorsWithAxesInnermostFirst) {
  const Reader reader(kGood / "quantized.gguf");
  ASSERT_EQ(reader.tensors().size(), 3u);
  const TensorInfo& tensor = reader.tensor("q8");
  EXPECT_EQ(tensor.format, Format::kQ8_0);
  EXPECT_EQ(tensor.n_dims, 2);
  EXPECT_EQ(tensor.columns(), 64u);
  EXPECT_EQ(tensor.rows(), 2u);
  EXPECT_EQ(tensor.size_bytes, 4u * 34u);
  EXPECT_EQ(tensor.describe(), "Q8_0 [64 x 2]");
  EXPECT_EQ(reader.tensor("k").describe(), "Q4_K [256]");
  EXPECT_EQ(reader.find("absent"), nullptr);
  EXPECT_EQ(reader.total_file_bytes(), std::filesystem::file_size(kGood / "quantized.gguf"));
}

TEST(GgufReader, AMissingTensorIsAnErrorThatNamesIt) {
  const Reader reader(kGood / "version3.gguf");
  try {
    (void)reader.tensor("blk.0.attn_q.weight");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    EXPECT_NE(std::string(error.what()).find("blk.0.attn_q.weight"), std::string::npos);
  }
}

TEST(GgufReader, ReadsAnyRangeOfATensorAndNothingBeyondIt) {
  const Reader reader(kGood / "data_in_another_order.gguf");
  const TensorInfo& tensor = reader.tensor("b.weight");  // listed second, stored first: byte j is (7 + j) % 251
  std::vector<std::byte> bytes(5);
  reader.read(tensor, 3, bytes);
  for (std::size_t j = 0; j < bytes.size(); ++j) EXPECT_EQ(bytes[j], static_cast<std::byte>(7 + 3 + j));
  reader.read(tensor, tensor.size_bytes, {});
  for (const std::uint64_t offset : {tensor.size_bytes - 4, tensor.size_bytes + 1, ~std::uint64_t{0}}) {
    EXPECT_THROW(reader.read(tensor, offset, bytes), Error) << offset;
  }
}

TEST(GgufReader, FindsASplitModelFromAnyPart) {
  for (const char* name : {"first_without_tensors-00001-of-00003.gguf", "first_without_tensors-00002-of-00003.gguf",
                           "first_without_tensors-00003-of-00003.gguf"}) {
    const Reader reader(kGood / name);
    EXPECT_EQ(reader.part_count(), 3u);
    EXPECT_EQ(reader.path(), kGood / name);
    ASSERT_NE(reader.metadata().string_at("general.architecture"), nullptr);
    ASSERT_EQ(reader.tensors().size(), 2u);
    EXPECT_EQ(reader.tensor("a.weight").part, 1u);
    EXPECT_EQ(reader.tensor("b.weight").part, 2u);
    std::vector<std::byte> bytes(32);
    reader.read(reader.tensor("b.weight"), 0, bytes);
    EXPECT_EQ(bytes[9], std::byte{9});
  }
}

TEST(GgufReader, ValueTypesKeepTheirWidths) {
  const Reader reader(kGood / "every_value_type.gguf");
  const std::vector<ValueType> types = {ValueType::kUint8,  ValueType::kInt8,   ValueType::kUint16,  ValueType::kInt16,
                                        ValueType::kUint32, ValueType::kInt32,  ValueType::kFloat32, ValueType::kBool,
                                        ValueType::kString, ValueType::kUint64, ValueType::kInt64,   ValueType::kFloat64};
  for (const ValueType type : types) {
    const std::string number = std::to_string(static_cast<int>(type));
    EXPECT_EQ(type_of(*reader.metadata().find("scalar." + number)), type);
    const auto* array = std::get_if<Array>(reader.metadata().find("array." + number));
    const auto* empty = std::get_if<Array>(reader.metadata().find("empty." + number));
    ASSERT_TRUE(array != nullptr && empty != nullptr);
    EXPECT_EQ(element_type_of(*array), type);
    EXPECT_EQ(size_of(*array), 2u);
    EXPECT_EQ(element_type_of(*empty), type);
    EXPECT_EQ(size_of(*empty), 0u);
  }
  EXPECT_EQ(reader.metadata().unsigned_at("scalar.10"), (std::uint64_t{1} << 63) + 1);
  EXPECT_EQ(reader.metadata().integer_at("scalar.11"), -(std::int64_t{1} << 62));
  EXPECT_EQ(reader.metadata().number_at("scalar.12"), 0.1);
  EXPECT_EQ(reader.metadata().bool_at("scalar.7"), true);
}

TEST(GgufReader, ADirectoryLargerThanOnePieceIsReadWhole) {
  // 300,000 strings and 2 MB of bytes: several pieces of the cursor, with fields across their borders.
  const ScratchFolder scratch;
  Metadata metadata;
  std::vector<std::string> words;
  for (int i = 0; i < 300'000; ++i) words.push_back("word" + std::to_string(i));
  std::vector<std::uint8_t> bytes(2'000'003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 31);
  metadata.add("words", Array(words));
  metadata.add("bytes", Array(bytes));
  Writer(scratch / "large.gguf", metadata, {}).finish();
  const Reader reader(scratch / "large.gguf");
  EXPECT_TRUE(*reader.metadata().strings_at("words") == words);
  EXPECT_TRUE(std::get<std::vector<std::uint8_t>>(std::get<Array>(*reader.metadata().find("bytes"))) == bytes);
}

TEST(GgufDirectory, IsParsedFromTheStartOfALargerFile) {
  const std::vector<char> bytes = bytes_of(kGood / "version3.gguf");
  const auto span = std::as_bytes(std::span(bytes));
  const Directory whole = parse_directory(span, bytes.size(), "file");
  const Directory start = parse_directory(span.first(static_cast<std::size_t>(whole.data_offset)), bytes.size(), "file");
  EXPECT_EQ(start.tensors.size(), whole.tensors.size());
  EXPECT_THROW((void)parse_directory(span.first(60), bytes.size(), "file"), Error);
}

TEST(SplitName, IsTakenApartAndPutTogether) {
  const auto name = SplitName::parse("models/big-q4-00002-of-00005.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->stem, "big-q4");
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 5u);
  EXPECT_EQ(name->part_path("models/big-q4-00002-of-00005.gguf", 4), "models/big-q4-00004-of-00005.gguf");
  for (const char* other : {"big.gguf", "-00001-of-00002.gguf", "a-00003-of-00002.gguf", "a-00000-of-00002.gguf", "a-0001-of-0002.gguf",
                            "a-00001-of-00002.bin", "a-0000x-of-00002.gguf", "a-00001_of_00002.gguf"}) {
    EXPECT_FALSE(SplitName::parse(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace quench::gguf
