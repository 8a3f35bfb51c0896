#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "assets.h"
#include "base/file.h"
#include "base/scratch_folder.h"
#include "gguf/reader.h"
#include "gguf/rewrite.h"

namespace quench {
namespace {

class Reemit : public testing::TestWithParam<std::string_view> {};

TEST_P(Reemit, GivesTheSameFileByteForByte) {
  const auto original = asset(GetParam());
  if (!original) GTEST_SKIP() << missing_asset(GetParam());
  const ScratchFolder folder;
  const auto copy = folder / "copy.gguf";
  gguf::rewrite(gguf::Reader(*original), copy);
  const MappedFile before(*original);
  const MappedFile after(copy);
  ASSERT_EQ(before.bytes().size(), after.bytes().size());
  const auto [first_difference, ignored] = std::ranges::mismatch(before.bytes(), after.bytes());
  EXPECT_EQ(first_difference, before.bytes().end()) << "first difference at byte " << first_difference - before.bytes().begin();
}

INSTANTIATE_TEST_SUITE_P(RealModels, Reemit, testing::Values(kSmolLm2, kGemma3),
                         [](const auto& row) { return row.param == kSmolLm2 ? std::string("SmolLm2") : std::string("Gemma3"); });

}  // namespace
}  // namespace quench
