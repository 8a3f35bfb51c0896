#include "base/append_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/scratch_folder.h"

namespace quench {
namespace {

TEST(AppendFile, GrowsByPiecesAndKeepsWhatWasThere) {
  const ScratchFolder folder;
  const auto path = folder / "file";
  std::ofstream(path) << "old\n";
  {
    AppendFile file(path);
    EXPECT_EQ(file.contents(), "old\n");
    file.append("new\n");
  }
  AppendFile file(path);
  EXPECT_EQ(file.contents(), "old\nnew\n");
  file.truncate(4);
  file.append("x");
  EXPECT_EQ(file.contents(), "old\nx");
}

TEST(AppendFile, IsMadeWhenItIsMissing) {
  const ScratchFolder folder;
  const AppendFile file(folder / "file");
  EXPECT_EQ(file.contents(), "");
}

TEST(AppendFile, TwoWritersAtATimeAreRefused) {
  const ScratchFolder folder;
  const auto path = folder / "file";
  const AppendFile first(path);
  try {
    const AppendFile second(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadRequest);
    EXPECT_NE(std::string(error.what()).find("another program"), std::string::npos);
  }
}

TEST(AppendFile, AFolderAndAMissingFolderAreNamed) {
  EXPECT_THROW(AppendFile file(testing::TempDir()), Error);
  EXPECT_THROW(AppendFile file("no/such/folder/file"), Error);
}

}  // namespace
}  // namespace quench
