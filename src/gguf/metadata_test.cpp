#include "gguf/metadata.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace quench::gguf {
namespace {

std::string error_of(const auto& action) {
  try {
    (void)action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    return error.what();
  }
  return "";
}

TEST(Metadata, KeepsTheOrderOfTheFile) {
  Metadata metadata;
  metadata.add("z", std::uint32_t{1});
  metadata.add("a", std::string("text"));
  metadata.set("z", std::uint8_t{2});
  metadata.set("m", true);
  ASSERT_EQ(metadata.entries().size(), 3u);
  EXPECT_EQ(metadata.entries()[0].key, "z");
  EXPECT_EQ(metadata.entries()[1].key, "a");
  EXPECT_EQ(metadata.entries()[2].key, "m");
  EXPECT_EQ(metadata.unsigned_at("z"), 2u);
}

TEST(Metadata, ADuplicateKeyIsAnErrorThatNamesIt) {
  Metadata metadata;
  metadata.add("general.name", std::string("a"));
  const std::string message = error_of([&] {
    metadata.add("general.name", std::string("b"));
    return 0;
  });
  EXPECT_NE(message.find("general.name"), std::string::npos) << message;
}

TEST(Metadata, AbsentKeysAreNothing) {
  const Metadata metadata;
  EXPECT_FALSE(metadata.contains("k"));
  EXPECT_EQ(metadata.unsigned_at("k"), std::nullopt);
  EXPECT_EQ(metadata.integer_at("k"), std::nullopt);
  EXPECT_EQ(metadata.number_at("k"), std::nullopt);
  EXPECT_EQ(metadata.bool_at("k"), std::nullopt);
  EXPECT_EQ(metadata.string_at("k"), nullptr);
  EXPECT_EQ(metadata.strings_at("k"), nullptr);
  EXPECT_EQ(metadata.floats_at("k"), nullptr);
  EXPECT_EQ(metadata.integers_at("k"), std::nullopt);
}

TEST(Metadata, AnIntegerOfAnyWidthIsAcceptedWhereItFits) {
  Metadata metadata;
  metadata.add("u8", std::uint8_t{255});
  metadata.add("i8", std::int8_t{-1});
  metadata.add("u64", std::numeric_limits<std::uint64_t>::max());
  metadata.add("i64", std::int64_t{7});
  EXPECT_EQ(metadata.unsigned_at("u8"), 255u);
  EXPECT_EQ(metadata.unsigned_at("i64"), 7u);
  EXPECT_EQ(metadata.integer_at("i8"), -1);
  EXPECT_EQ(metadata.number_at("u8"), 255.0);
  EXPECT_EQ(metadata.unsigned_at("u64"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_NE(error_of([&] { return metadata.unsigned_at("i8"); }).find("i8 is -1"), std::string::npos);
  EXPECT_NE(error_of([&] { return metadata.integer_at("u64"); }).find("u64 is 18446744073709551615"), std::string::npos);
}

TEST(Metadata, AnotherTypeIsAnErrorWithKeyTypeFoundAndTypeWanted) {
  Metadata metadata;
  metadata.add("text", std::string("a"));
  metadata.add("flag", true);
  metadata.add("half", 0.5f);
  metadata.add("list", Array(std::vector<double>{1.0}));
  EXPECT_EQ(error_of([&] { return metadata.unsigned_at("text"); }), "metadata: text is string, expected an unsigned integer");
  EXPECT_EQ(error_of([&] { return metadata.unsigned_at("flag"); }), "metadata: flag is bool, expected an unsigned integer");
  EXPECT_EQ(error_of([&] { return metadata.unsigned_at("half"); }), "metadata: half is float32, expected an unsigned integer");
  EXPECT_EQ(error_of([&] { return metadata.number_at("flag"); }), "metadata: flag is bool, expected a number");
  EXPECT_EQ(error_of([&] { return metadata.bool_at("half"); }), "metadata: half is float32, expected bool");
  EXPECT_EQ(error_of([&] { return metadata.string_at("list") != nullptr; }), "metadata: list is array of float64, expected string");
  EXPECT_EQ(error_of([&] { return metadata.strings_at("text") != nullptr; }), "metadata: text is string, expected array of string");
  EXPECT_EQ(error_of([&] { return metadata.floats_at("list") != nullptr; }),
            "metadata: list is array of float64, expected array of float32");
  EXPECT_EQ(error_of([&] { return metadata.integers_at("list"); }), "metadata: list is array of float64, expected an array of integers");
  EXPECT_EQ(error_of([&] { return metadata.integers_at("text"); }), "metadata: text is string, expected an array of integers");
}

TEST(Metadata, IntegerArraysAreWidened) {
  Metadata metadata;
  metadata.add("i8", Array(std::vector<std::int8_t>{-1, 2}));
  metadata.add("u32", Array(std::vector<std::uint32_t>{4'000'000'000u}));
  metadata.add("u64", Array(std::vector<std::uint64_t>{std::uint64_t{1} << 63}));
  metadata.add("bools", Array(std::vector<bool>{true}));
  EXPECT_EQ(metadata.integers_at("i8"), (std::vector<std::int64_t>{-1, 2}));
  EXPECT_EQ(metadata.integers_at("u32"), (std::vector<std::int64_t>{4'000'000'000}));
  EXPECT_NE(error_of([&] { return metadata.integers_at("u64"); }).find("9223372036854775808"), std::string::npos);
  EXPECT_NE(error_of([&] { return metadata.integers_at("bools"); }).find("array of bool"), std::string::npos);
}

}  // namespace
}  // namespace quench::gguf
