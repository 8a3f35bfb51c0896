#include "kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "quant/random_blocks.h"

namespace quench {
namespace {

class EveryLayout : public ::testing::TestWithParam<Format> {
 protected:
  [[nodiscard]] const FormatInfo& info() const { return format_info(GetParam()); }
  [[nodiscard]] std::size_t columns_near(std::size_t target) const {
    const auto block = static_cast<std::size_t>(info().block_elements);
    return (target + block - 1) / block * block;
  }
  [[nodiscard]] std::size_t row_size(std::size_t columns) const { return *row_bytes(GetParam(), columns); }
};

std::vector<Format> every_format() {
  std::vector<Format> formats;
  for (const FormatInfo& info : all_formats()) formats.push_back(info.format);
  return formats;
}
INSTANTIATE_TEST_SUITE_P(Formats, EveryLayout, ::testing::ValuesIn(every_format()),
                         [](const auto& format) { return std::string(format_info(format.param).name); });

TEST_P(EveryLayout, UnpackingGivesTheFileBytesBack) {
  Xoshiro256 random(1);
  for (const std::size_t rows : {1u, 5u, 16u, 17u, 48u}) {
    for (const std::size_t target : {1u, 96u, 576u}) {
      const std::size_t columns = columns_near(target);
      std::vector<std::byte> file(rows * row_size(columns));
      for (auto& byte : file) byte = static_cast<std::byte>(random.next() >> 56);  // any bytes: nothing may be lost
      PackedMatrix matrix(GetParam(), rows, columns, "test");
      matrix.pack_rows(0, file);
      std::vector<std::byte> row(row_size(columns));
      for (std::size_t r = 0; r < rows; ++r) {
        matrix.unpack_row(r, row);
        ASSERT_EQ(std::memcmp(row.data(), file.data() + r * row.size(), row.size()), 0)
            << "row " << r << " of " << rows << " x " << columns;
      }
    }
  }
}

TEST_P(EveryLayout, PackingInPartsEqualsPackingAtOnce) {
  Xoshiro256 random(2);
  const std::size_t columns = columns_near(64);
  const std::size_t rows = 41;
  std::vector<std::byte> file(rows * row_size(columns));
  for (auto& byte : file) byte = static_cast<std::byte>(random.next() >> 56);
  PackedMatrix whole(GetParam(), rows, columns, "test");
  whole.pack_rows(0, file);
  PackedMatrix parts(GetParam(), rows, columns, "test");
  const std::span<const std::byte> bytes(file);
  parts.pack_rows(32, bytes.subspan(32 * row_size(columns)));
  parts.pack_rows(0, bytes.first(32 * row_size(columns)));
  EXPECT_EQ(std::memcmp(whole.tile(0), parts.tile(0), whole.tile_count() * whole.tile_bytes()), 0);
}

TEST_P(EveryLayout, GatherEqualsDecodingTheFile) {
  Xoshiro256 random(3);
  const std::size_t columns = columns_near(512);
  const std::size_t rows = 19;
  const std::size_t blocks = columns / static_cast<std::size_t>(info().block_elements);
  std::vector<std::byte> file(rows * row_size(columns));
  random_blocks(GetParam(), random, rows * blocks, 0.1f, file.data());
  PackedMatrix matrix(GetParam(), rows, columns, "test");
  matrix.pack_rows(0, file);
  std::vector<float> got(columns);
  std::vector<float> want(columns);
  for (std::size_t r = 0; r < rows; ++r) {
    matrix.gather_row(r, got);
    info().decode(file.data() + r * row_size(columns), blocks, want.data());
    ASSERT_EQ(std::memcmp(got.data(), want.data(), columns * sizeof(float)), 0) << "row " << r;
  }
}

TEST_P(EveryLayout, ThePackedFormIsAsDenseAsTheFile) {
  const std::size_t columns = columns_near(1024);
  const PackedMatrix matrix(GetParam(), 4096, columns, "test");
  EXPECT_LE(static_cast<double>(matrix.size_bytes()), 1.06 * static_cast<double>(4096 * row_size(columns)));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix.tile(1)) % 64, 0u);
}

TEST(PackedMatrix, RowsThatAreNoWholeBlocksAreRefusedByName) {
  try {
    const PackedMatrix matrix(Format::kQ4_K, 16, 300, "blk.0.ffn_up.weight");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("blk.0.ffn_up.weight"), std::string::npos) << error.what();
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
  }
}

TEST(PackedMatrix, SizesThatDoNotFitInMemoryAreAnError) {
  EXPECT_THROW(PackedMatrix(Format::kF32, std::size_t{1} << 40, std::size_t{1} << 40, "huge"), Error);
}

}  // namespace
}  // namespace quench
