#include "gguf/writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "gguf/reader.h"

namespace quench::gguf {
namespace {

std::string refusal_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadRequest) << error.what();
    return error.what();
  }
  return "";
}

std::vector<std::byte> pattern(std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

TEST(GgufWriter, WhatIsWrittenInPiecesIsReadBack) {
  const ScratchFolder scratch;
  Metadata metadata;
  metadata.add("general.architecture", std::string("qwen3"));
  metadata.add("general.alignment", std::uint32_t{64});
  Writer writer(scratch / "a.gguf", metadata, {{"x", Format::kF32, {3}}, {"y", Format::kF16, {5, 2}}}, {.alignment = 64});
  const auto bytes = pattern(20);
  writer.write(std::span(bytes).first(5));
  writer.write({});
  writer.write(std::span(bytes).subspan(5, 7));
  writer.write(bytes);
  writer.finish();
  const Reader reader(scratch / "a.gguf");
  EXPECT_EQ(reader.alignment(), 64u);
  EXPECT_TRUE(reader.padded_end());
  EXPECT_EQ(reader.total_file_bytes() % 64, 0u);
  std::vector<std::byte> found(12);
  reader.read(reader.tensor("x"), 0, found);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), bytes.begin()));
  found.resize(20);
  reader.read(reader.tensor("y"), 0, found);
  EXPECT_EQ(found, bytes);
}

TEST(GgufWriter, WithoutPaddingTheFileEndsWithTheLastTensor) {
  const ScratchFolder scratch;
  Writer writer(scratch / "a.gguf", {}, {{"x", Format::kF32, {3}}}, {.pad_end = false});
  writer.write(pattern(12));
  writer.finish();
  const Reader reader(scratch / "a.gguf");
  EXPECT_FALSE(reader.padded_end());
  EXPECT_EQ(reader.tensor("x").file_offset + 12, reader.total_file_bytes());
}

TEST(GgufWriter, BytesPastATensorOrAfterTheLastAreRefused) {
  const ScratchFolder scratch;
  Writer writer(scratch / "a.gguf", {}, {{"x", Format::kF32, {3}}});
  EXPECT_NE(refusal_of([&] { writer.write(pattern(13)); }).find("tensor x takes 12 more bytes, given 13"), std::string::npos);
  writer.write(pattern(12));
  EXPECT_NE(refusal_of([&] { writer.write(pattern(1)); }).find("after the last tensor"), std::string::npos);
}

TEST(GgufWriter, AnIncompleteFileNeverAppears) {
  const ScratchFolder scratch;
  {
    Writer writer(scratch / "a.gguf", {}, {{"x", Format::kF32, {3}}, {"y", Format::kF32, {3}}});
    writer.write(pattern(12));
    writer.write(pattern(4));
    EXPECT_NE(refusal_of([&] { writer.finish(); }).find("tensor y is incomplete: 4 of 12"), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "a.gguf"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(GgufWriter, RefusesWhatTheReaderWouldRefuse) {
  const ScratchFolder scratch;
  const auto refuse = [&](std::vector<TensorPlan> plans, const Metadata& metadata = {}, const Layout& layout = {}) {
    return refusal_of([&] { Writer(scratch / "a.gguf", metadata, std::move(plans), layout); });
  };
  const TensorPlan good{"x", Format::kF32, {3}};
  EXPECT_NE(refuse({good, good}).find("x is planned twice"), std::string::npos);
  EXPECT_NE(refuse({{"", Format::kF32, {3}}}).find("empty name"), std::string::npos);
  EXPECT_NE(refuse({{std::string(65, 'n'), Format::kF32, {3}}}).find("longer than 64"), std::string::npos);
  EXPECT_NE(refuse({{std::string("a\0b", 3), Format::kF32, {3}}}).find("zero byte"), std::string::npos);
  EXPECT_NE(refuse({{"x", Format::kF32, {}}}).find("1 to 4 dimensions"), std::string::npos);
  EXPECT_NE(refuse({{"x", Format::kF32, {1, 1, 1, 1, 1}}}).find("1 to 4 dimensions"), std::string::npos);
  EXPECT_NE(refuse({{"x", Format::kF32, {3, 0}}}).find("a dimension is 0"), std::string::npos);
  EXPECT_NE(refuse({{"x", Format::kQ4_K, {255}}}).find("no whole number of q4_K blocks"), std::string::npos);
  EXPECT_NE(refuse({{"x", Format::kF32, {1u << 30, 1u << 30, 1u << 30}}}).find("overflow"), std::string::npos);
  EXPECT_NE(refuse({good}, {}, {.alignment = 48}).find("no power of two"), std::string::npos);
  EXPECT_NE(refuse({good}, {}, {.alignment = 64}).find("general.alignment says otherwise"), std::string::npos);
  EXPECT_NE(refuse({good}, {}, {.version = 1}).find("version 1"), std::string::npos);
  Metadata metadata;
  metadata.add("general.alignment", std::uint64_t{32});
  EXPECT_NE(refuse({good}, metadata).find("expected uint32"), std::string::npos);
}

}  // namespace
}  // namespace quench::gguf
