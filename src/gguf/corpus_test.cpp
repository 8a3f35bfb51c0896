#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "gguf/reader.h"
#include "gguf/rewrite.h"

namespace quench::gguf {
namespace {

const std::filesystem::path kCorpus = std::filesystem::path(QUENCH_SOURCE_DIR) / "tests/corpus/gguf";

struct Expectation {
  std::string file;
  std::string kind;
  std::string fragment;
};

std::vector<Expectation> read_manifest() {
  std::ifstream stream(kCorpus / "manifest.tsv");
  std::vector<Expectation> rows;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    Expectation row;
    std::getline(fields, row.file, '\t');
    std::getline(fields, row.kind, '\t');
    std::getline(fields, row.fragment, '\t');
    rows.push_back(row);
  }
  return rows;
}

std::string kind_name(ErrorKind kind) {
  if (kind == ErrorKind::kBadFile) return "bad_file";
  return kind == ErrorKind::kUnsupported ? "unsupported" : "another kind";
}

std::span<const std::byte> as_span(const std::vector<char>& bytes) { return std::as_bytes(std::span(bytes)); }

/// Whether the bytes parse; anything but an Error fails the test by itself.
bool parses(std::span<const std::byte> bytes) {
  try {
    (void)parse_directory(bytes, bytes.size(), "file");
    return true;
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::kBadFile || error.kind() == ErrorKind::kUnsupported) << error.what();
    return false;
  }
}

TEST(GgufCorpus, HoldsAtLeastFiftyFilesOfUnderFourKilobytes) {
  std::size_t n_files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kCorpus)) {
    if (entry.path().extension() != ".gguf") continue;
    ++n_files;
    EXPECT_LT(entry.file_size(), 4096u) << entry.path();
  }
  EXPECT_GE(n_files, 50u);
}

TEST(GgufCorpus, GoodFilesOpenAndBadFilesSayWhatIsWrong) {
  const auto rows = read_manifest();
  ASSERT_GE(rows.size(), 50u);
  for (const Expectation& row : rows) {
    SCOPED_TRACE(row.file);
    try {
      const Reader reader(kCorpus / row.file);
      EXPECT_EQ(row.kind, "ok") << "opened, but should have been refused";
    } catch (const Error& error) {
      EXPECT_EQ(row.kind, kind_name(error.kind())) << error.what();
      EXPECT_NE(std::string(error.what()).find(row.fragment), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(std::filesystem::path(row.file).stem().string().substr(0, 8)), std::string::npos)
          << "the file is not named: " << error.what();
    }
  }
}

TEST(GgufCorpus, RewritingAGoodFileGivesTheSameBytes) {
  // Their data lies in a way that the writer does not produce, or does not start at the first part.
  const std::set<std::string> others = {"data_in_another_order.gguf", "gap_between_tensors.gguf", "bytes_after_the_end.gguf"};
  const ScratchFolder scratch;
  std::size_t n_compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus / "good")) {
    const Reader reader(entry.path());
    if (others.contains(entry.path().filename().string()) || reader.part_count() > 1) continue;
    rewrite(reader, scratch / "again.gguf");
    EXPECT_EQ(bytes_of(entry.path()), bytes_of(scratch / "again.gguf")) << entry.path();
    ++n_compared;
  }
  EXPECT_GE(n_compared, 20u);
}

TEST(GgufCorpus, RewritingWhatLiesOtherwiseKeepsMetadataAndData) {
  const ScratchFolder scratch;
  for (const char* name : {"data_in_another_order.gguf", "gap_between_tensors.gguf", "bytes_after_the_end.gguf",
                           "two_parts-00002-of-00002.gguf", "aligned_first_part-00001-of-00002.gguf"}) {
    const Reader before(kCorpus / "good" / name);
    rewrite(before, scratch / "again.gguf");
    const Reader after(scratch / "again.gguf");
    ASSERT_EQ(before.tensors().size(), after.tensors().size()) << name;
    EXPECT_FALSE(after.metadata().contains("split.count"));
    for (const TensorInfo& tensor : before.tensors()) {
      std::vector<std::byte> expected(tensor.size_bytes), found(tensor.size_bytes);
      before.read(tensor, 0, expected);
      after.read(after.tensor(tensor.name), 0, found);
      EXPECT_EQ(expected, found) << name << " " << tensor.name;
    }
  }
}

TEST(GgufCorpus, EveryProperPrefixOfAFileWithTensorsIsRefused) {
  for (const char* name : {"version3.gguf", "quantized.gguf", "every_value_type.gguf", "tokens.gguf", "unpadded_end.gguf"}) {
    const std::vector<char> bytes = bytes_of(kCorpus / "good" / name);
    const Directory directory = parse_directory(as_span(bytes), bytes.size(), name);
    const std::uint64_t end =
        directory.tensors.empty() ? directory.data_offset - 31 : directory.tensors.back().file_offset + directory.tensors.back().size_bytes;
    for (std::size_t length = 0; length < end; ++length) {
      EXPECT_FALSE(parses(as_span(bytes).first(length))) << name << " cut at " << length;
    }
    EXPECT_TRUE(parses(as_span(bytes)));
  }
}

TEST(GgufCorpus, NoChangedByteDoesMoreThanAnError) {
  std::size_t n_refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus / "good")) {
    std::vector<char> bytes = bytes_of(entry.path());
    for (std::size_t i = 0; i < std::min<std::size_t>(bytes.size(), 400); ++i) {
      const char original = bytes[i];
      for (const int change : {0x01, 0x80, 0xFF}) {
        bytes[i] = static_cast<char>(original ^ change);
        n_refused += parses(as_span(bytes)) ? 0 : 1;
      }
      bytes[i] = original;
    }
  }
  EXPECT_GT(n_refused, 1000u);
}

}  // namespace
}  // namespace quench::gguf
