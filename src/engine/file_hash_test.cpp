#include "engine/file_hash.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/scratch_folder.h"

namespace quench {
namespace {

std::array<std::uint64_t, 2> hash_of(const std::vector<std::string>& contents, int threads) {
  const ScratchFolder folder;
  std::vector<File> files;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const auto path = folder / std::to_string(i);
    std::ofstream(path, std::ios::binary) << contents[i];
    files.emplace_back(path);
  }
  ThreadPool pool(threads);
  return hash_files(files, pool);
}

TEST(FileHash, DependsOnEveryByteAndOnWhereFilesEnd) {
  const std::string large(std::size_t{9} << 20, 'a');
  std::string changed = large;
  changed[std::size_t{5} << 20] = 'b';
  const auto hash = hash_of({large, "x"}, 1);
  EXPECT_EQ(hash_of({large, "x"}, 3), hash);
  EXPECT_NE(hash_of({changed, "x"}, 3), hash);
  EXPECT_NE(hash_of({"x", large}, 1), hash);
  EXPECT_NE(hash_of({large + "x"}, 1), hash);
  EXPECT_NE(hash_of({large, "x", ""}, 1), hash);
}

}  // namespace
}  // namespace quench
