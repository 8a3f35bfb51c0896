#include "base/file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"

namespace quench {
namespace {

std::filesystem::path scratch(const char* name) { return std::filesystem::path(testing::TempDir()) / name; }

void write(const std::filesystem::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

TEST(File, ReadsAtAnOffsetAndSaysWhereTheFileEnds) {
  const auto path = scratch("quench_file_test");
  write(path, "0123456789");
  const File file(path);
  EXPECT_EQ(file.size_bytes(), 10u);
  std::string text(4, ' ');
  file.read_at(3, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "3456");
  try {
    file.read_at(8, std::as_writable_bytes(std::span(text)));
    FAIL() << "a short read went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find("2 bytes"), std::string::npos) << error.what();
  }
}

TEST(File, AMissingFileAndADirectoryAreNamed) {
  try {
    const File file("no/such/file");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find("no/such/file"), std::string::npos);
  }
  try {
    const File file(testing::TempDir());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadRequest);
  }
}

TEST(FileWriter, AnUncommittedFileLeavesTheOldOneAndNoTrace) {
  const auto path = scratch("quench_writer_test");
  write(path, "old");
  {
    FileWriter writer(path);
    writer.write("new");
  }
  EXPECT_EQ(read_text(path.string(), 100), "old");
  FileWriter writer(path);
  writer.write("new");
  writer.commit();
  EXPECT_EQ(read_text(path.string(), 100), "new");
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
    EXPECT_EQ(entry.path().string().find("quench_writer_test.partial"), std::string::npos);
  }
}

TEST(ReadText, RefusesAFileAboveTheLimit) {
  const auto path = scratch("quench_limit_test");
  write(path, "12345");
  EXPECT_EQ(read_text(path.string(), 5), "12345");
  EXPECT_THROW((void)read_text(path.string(), 4), Error);
}

TEST(MappedFile, ShowsTheBytesAndSurvivesRelease) {
  const auto path = scratch("quench_map_test");
  write(path, std::string(20000, 'x'));
  const MappedFile mapped(path);
  ASSERT_EQ(mapped.bytes().size(), 20000u);
  mapped.release(0, 20000);
  EXPECT_EQ(mapped.bytes()[12345], std::byte{'x'});
}

}  // namespace
}  // namespace quench
