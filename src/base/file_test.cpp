#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/scratch_folder.h"

namespace quench {
namespace {

std::string error_text(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void write(const std::filesystem::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

TEST(File, ReadsAtAnOffsetAndSaysWhereTheFileEnds) {
  const ScratchFolder scratch;
  const auto path = scratch / "file";
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
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
  }
}

TEST(File, AFifoIsRefusedWithoutWaitingForItsWriter) {
  const ScratchFolder scratch;
  const auto path = scratch / "file";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(error_text([&] { const File file(path); }), path.string() + ": is a fifo, not a regular file");
}

TEST(FileWriter, AnUncommittedFileLeavesTheOldOneAndNoTrace) {
  const ScratchFolder scratch;
  const auto path = scratch / "file";
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

TEST(FileWriter, WritesStraightIntoAFifoAndLeavesItInPlace) {
  const ScratchFolder scratch;
  const auto path = scratch / "file";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = read_text(path.string(), 100); });
  {
    FileWriter writer(path);
    writer.write("through");
    writer.commit();
  }
  reader.join();
  EXPECT_EQ(received, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(FileWriter, FollowsSymbolicLinksToTheFileThatTheyMean) {
  const ScratchFolder scratch;
  const auto folder = scratch / "folder";
  std::filesystem::create_directory(folder);
  write(folder / "there", "old");
  for (const char* target : {"there", "not_yet"}) {
    const auto link = folder / (std::string("to_") + target);
    std::filesystem::create_symlink(target, link);
    FileWriter writer(link);
    writer.write("new");
    writer.commit();
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(read_text((folder / target).string(), 100), "new");
  }
}

TEST(FileWriter, KeepsThePermissionsOfTheFileThatItReplaces) {
  const ScratchFolder scratch;
  const auto path = scratch / "file";
  write(path, "old");
  constexpr auto kOwnerOnly = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::permissions(path, kOwnerOnly);
  FileWriter writer(path);
  writer.commit();
  EXPECT_EQ(std::filesystem::status(path).permissions(), kOwnerOnly);
}

TEST(FileWriter, RefusesWhatMayNotBeWritten) {
  EXPECT_NE(error_text([] { FileWriter writer(testing::TempDir()); }).find("directory"), std::string::npos);
  const ScratchFolder scratch;
  const auto missing = scratch / "folder" / "file";
  EXPECT_EQ(error_text([&] { FileWriter writer(missing); }), missing.string() + ": cannot create: No such file or directory");
  if (::geteuid() == 0) GTEST_SKIP() << "root may write any file";
  const auto path = scratch / "file";
  write(path, "old");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  EXPECT_NE(error_text([&] { FileWriter writer(path); }).find("Permission denied"), std::string::npos);
}

TEST(FileWriter, AnInterruptRemovesTheUnfinishedFileAndLeavesTheOldOne) {
  const ScratchFolder scratch;
  const auto folder = scratch / "folder";
  std::filesystem::create_directory(folder);
  write(folder / "file", "old");
  FileWriter writer(folder / "file");
  writer.write("new");
  remove_unfinished_files();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_EQ(read_text((folder / "file").string(), 100), "old");
}

TEST(ReadText, ReadsAFifoToItsEndAndRefusesAFolder) {
  const ScratchFolder scratch;
  const auto path = scratch / "file";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread sender([&] { write(path, "12345"); });
  EXPECT_EQ(read_text(path.string(), 5), "12345");
  sender.join();
  EXPECT_NE(error_text([] { (void)read_text(testing::TempDir(), 5); }).find("directory"), std::string::npos);
}

TEST(ReadText, RefusesAFileAboveTheLimit) {
  const ScratchFolder scratch;
  const auto path = scratch / "file";
  write(path, "12345");
  EXPECT_EQ(read_text(path.string(), 5), "12345");
  EXPECT_THROW((void)read_text(path.string(), 4), Error);
}

TEST(MappedFile, ShowsTheBytesAndSurvivesRelease) {
  const ScratchFolder scratch;
  const auto path = scratch / "file";
  write(path, std::string(20000, 'x'));
  const MappedFile mapped(path);
  ASSERT_EQ(mapped.bytes().size(), 20000u);
  mapped.release(0, 20000);
  EXPECT_EQ(mapped.bytes()[12345], std::byte{'x'});
}

}  // namespace
}  // namespace quench
