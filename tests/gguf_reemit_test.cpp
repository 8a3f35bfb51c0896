#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "assets.h"
#include "base/file.h"
#include "gguf/reader.h"
#include "gguf/rewrite.h"

namespace quench {
namespace {

/// Removes the file when the test ends, however it ends.
struct Scratch {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("quench-reemit-" + std::to_string(::getpid()) + ".gguf");
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

class Reemit : public testing::TestWithParam<std::string_view> {};

TEST_P(Reemit, GivesTheSameFileByteForByte) {
  const auto original = asset(GetParam());
  if (!original) GTEST_SKIP() << missing_asset(GetParam());
  const Scratch scratch;
  gguf::rewrite(gguf::Reader(*original), scratch.path);
  const MappedFile before(*original);
  const MappedFile after(scratch.path);
  ASSERT_EQ(before.bytes().size(), after.bytes().size());
  const auto [first_difference, ignored] = std::ranges::mismatch(before.bytes(), after.bytes());
  EXPECT_EQ(first_difference, before.bytes().end()) << "first difference at byte " << first_difference - before.bytes().begin();
}

INSTANTIATE_TEST_SUITE_P(RealModels, Reemit, testing::Values(kSmolLm2, kGemma3),
                         [](const auto& row) { return row.param == kSmolLm2 ? std::string("SmolLm2") : std::string("Gemma3"); });

}  // namespace
}  // namespace quench
