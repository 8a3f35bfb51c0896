#include "kernels/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/thread_pool.h"
#include "kernels/tables_under_test.h"
#include "quant/random_blocks.h"

namespace quench {
namespace {

/// Equal bits, or both NaN (outside the contract).
::testing::AssertionResult same_bits(const std::vector<float>& got, const std::vector<float>& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(want[i])) {
      return ::testing::AssertionFailure() << "at " << i << ": " << got[i] << ", expected " << want[i];
    }
  }
  return ::testing::AssertionSuccess();
}

struct FormatName {
  std::string operator()(const ::testing::TestParamInfo<Format>& info) const { return std::string(format_info(info.param).name); }
};

std::vector<Format> every_format() {
  std::vector<Format> formats;
  for (const FormatInfo& info : all_formats()) formats.push_back(info.format);
  return formats;
}

/// File bytes of a matrix of random blocks.
std::vector<std::byte> random_file(Format format, std::size_t rows, std::size_t columns, Xoshiro256& random) {
  const FormatInfo& info = format_info(format);
  const std::size_t blocks = rows * columns / static_cast<std::size_t>(info.block_elements);
  std::vector<std::byte> file(blocks * static_cast<std::size_t>(info.block_bytes));
  random_blocks(format, random, blocks, 0.05f, file.data());
  return file;
}

PackedMatrix pack(Format format, std::size_t rows, std::size_t columns, const std::vector<std::byte>& file) {
  PackedMatrix matrix(format, rows, columns, "test");
  matrix.pack_rows(0, file);
  return matrix;
}

/// Activations whose blocks range from zero over tiny to large.
std::vector<float> random_activations(std::size_t n, Xoshiro256& random) {
  std::vector<float> x(n);
  float magnitude = 1.0f;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 64 == 0) {
      constexpr std::array kMagnitudes = {0.0f, 1e-43f, 1e-30f, 1e4f, 1e12f, 1.0f, 1.0f, 1.0f};
      magnitude = kMagnitudes[random.below(kMagnitudes.size())];
    }
    x[i] = magnitude * static_cast<float>(random.uniform() * 2 - 1);
  }
  return x;
}

std::vector<float> product(const KernelTable& kernels, ThreadPool& pool, const PackedMatrix& matrix, const std::vector<float>& x) {
  const Compute compute{kernels, pool};
  const std::size_t tokens = x.size() / matrix.columns();
  Activations activations(tokens, matrix.columns());
  activations.assign(compute, activation_kind(matrix.format()), x.data(), tokens, matrix.columns(), matrix.columns());
  std::vector<float> out(tokens * matrix.rows(), -1.0f);
  linear(compute, matrix, activations, out.data(), matrix.rows());
  return out;
}

class EveryFormat : public ::testing::TestWithParam<Format> {
 protected:
  /// A column count of about `target` that the format can hold.
  static std::size_t columns_near(std::size_t target) {
    const auto block = static_cast<std::size_t>(format_info(GetParam()).block_elements);
    return (target + block - 1) / block * block;
  }
};
INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, ::testing::ValuesIn(every_format()), FormatName());

TEST_P(EveryFormat, EveryInstructionSetEqualsTheScalarDefinition) {
  Xoshiro256 random(7);
  ThreadPool pool(1);
  for (const std::size_t target : {1u, 33u, 256u, 576u, 2048u}) {
    const std::size_t columns = columns_near(target);
    for (const std::size_t rows : {1u, 15u, 16u, 33u}) {
      const PackedMatrix matrix = pack(GetParam(), rows, columns, random_file(GetParam(), rows, columns, random));
      for (const std::size_t tokens : {1u, 2u, 3u, 4u, 5u, 9u}) {
        const std::vector<float> x = random_activations(tokens * columns, random);
        const std::vector<float> want = product(kernels_for(Isa::kScalar), pool, matrix, x);
        for (const KernelTable* kernels : tables_under_test()) {
          ASSERT_TRUE(same_bits(product(*kernels, pool, matrix, x), want))
              << kernels->name << " " << rows << " x " << columns << ", " << tokens << " tokens";
        }
      }
    }
  }
}

/// A kernel that takes several tiles is given them, which products of few rows do not; units of 16 tokens whole, short and many, in place,
/// after a start inside a unit, and chosen.
TEST_P(EveryFormat, TilesAtOnceGiveTheSameBitsAsOneByOne) {
  constexpr std::size_t kTiles = 3;
  constexpr std::size_t kRowStride = kTiles * 16 + 5;
  Xoshiro256 random(9);
  ThreadPool pool(1);
  // One slab and more than one: of bf16 it has 512 columns, of the others 256 or 1,024.
  for (const std::size_t target : {256u, 1056u}) {
    const std::size_t columns = columns_near(target);
    const PackedMatrix matrix = pack(GetParam(), kTiles * 16, columns, random_file(GetParam(), kTiles * 16, columns, random));
    for (const std::size_t tokens : target == 256 ? std::vector<std::size_t>{3, 10, 18, 50} : std::vector<std::size_t>{37}) {
      const std::vector<float> x = random_activations(tokens * columns, random);
      std::vector<std::uint32_t> chosen(tokens);
      for (std::uint32_t& row : chosen) row = static_cast<std::uint32_t>(random.below(tokens));
      for (const KernelTable* kernels : tables_under_test()) {
        const Compute compute{*kernels, pool};
        Activations activations(tokens, columns);
        activations.assign(compute, activation_kind(GetParam()), x.data(), tokens, columns, columns);
        for (const bool choose : {false, true}) {
          if (choose) activations.select(chosen);
          for (const std::size_t first : {0u, 2u}) {
            LinearTile job{.tile = matrix.tile(0),
                           .columns = columns,
                           .x = &activations,
                           .first_token = first,
                           .n_tokens = tokens - first,
                           .out = nullptr,
                           .out_stride = kRowStride,
                           .n_tiles = 1,
                           .tile_bytes = matrix.tile_bytes()};
            const std::size_t most = kernels->tiles_for(GetParam(), job.n_tokens);
            if (most == 1) continue;
            // One tile after the other, on a kernel of one tile at a time; what is not written stays.
            std::vector<float> want(tokens * kRowStride, -1.0f);
            std::vector<float> got = want;
            for (std::size_t tile = 0; tile < kTiles; ++tile) {
              job.tile = matrix.tile(tile);
              job.out = want.data() + tile * 16;
              kernels_for(Isa::kScalar).linear_for(GetParam(), job.n_tokens)(job);
            }
            for (std::size_t tile = 0; tile < kTiles; tile += job.n_tiles) {
              job.n_tiles = std::min(most, kTiles - tile);
              job.tile = matrix.tile(tile);
              job.out = got.data() + tile * 16;
              kernels->linear_for(GetParam(), job.n_tokens)(job);
            }
            ASSERT_TRUE(same_bits(got, want)) << kernels->name << " " << columns << " columns, " << tokens << " tokens from " << first
                                              << (choose ? ", chosen" : "");
          }
        }
      }
    }
  }
}

TEST_P(EveryFormat, ExtremeQuantsAndScalesGiveTheSameBits) {
  Xoshiro256 random(8);
  ThreadPool pool(1);
  const std::size_t columns = columns_near(64);
  constexpr std::size_t kRows = 16;
  constexpr std::size_t kTokens = 18;  // few and many at once: whole groups, and two left over
  // As f16 scales: zero, the largest normal numbers, subnormal and negative ones; as quants: both ends and the middle.
  for (const unsigned fill : {0x00u, 0x01u, 0x3Cu, 0x78u, 0x7Bu, 0x80u, 0x88u, 0xFBu}) {
    const std::vector<std::byte> file(kRows * *row_bytes(GetParam(), columns), static_cast<std::byte>(fill));
    const PackedMatrix matrix = pack(GetParam(), kRows, columns, file);
    for (const float magnitude : {1e-44f, 1e-3f, 1.0f, 1e20f}) {
      std::vector<float> x(kTokens * columns, magnitude);
      for (std::size_t i = columns; i < x.size(); ++i) x[i] = random.below(2) == 0 ? magnitude : -magnitude;
      const std::vector<float> want = product(kernels_for(Isa::kScalar), pool, matrix, x);
      for (const KernelTable* kernels : tables_under_test()) {
        ASSERT_TRUE(same_bits(product(*kernels, pool, matrix, x), want)) << kernels->name << " bytes " << fill << " x " << magnitude;
      }
    }
  }
}

TEST_P(EveryFormat, BytesWithoutAnyOrderGiveTheSameBits) {
  Xoshiro256 random(9);
  ThreadPool pool(1);
  const std::size_t columns = columns_near(32);
  constexpr std::size_t kRows = 48;
  std::vector<std::byte> file(kRows * *row_bytes(GetParam(), columns));
  for (auto& byte : file) byte = static_cast<std::byte>(random.next() >> 56);
  const PackedMatrix matrix = pack(GetParam(), kRows, columns, file);
  const std::vector<float> x = random_activations(19 * columns, random);
  const std::vector<float> want = product(kernels_for(Isa::kScalar), pool, matrix, x);
  for (const KernelTable* kernels : tables_under_test()) {
    ASSERT_TRUE(same_bits(product(*kernels, pool, matrix, x), want)) << kernels->name;
  }
}

/// The first `tokens` of a product; each result is of its token alone.
std::vector<float> first_tokens(const std::vector<float>& product, std::size_t tokens, std::size_t rows) {
  return {product.begin(), product.begin() + static_cast<std::ptrdiff_t>(tokens * rows)};
}

TEST_P(EveryFormat, EveryNumberOfTokensGivesTheSameBits) {
  Xoshiro256 random(13);
  ThreadPool pool(1);
  constexpr std::size_t kRows = 19;
  constexpr std::size_t kTokens = 72;
  const std::size_t columns = columns_near(288);
  const PackedMatrix matrix = pack(GetParam(), kRows, columns, random_file(GetParam(), kRows, columns, random));
  const std::vector<float> x = random_activations(kTokens * columns, random);
  const std::vector<float> want = product(kernels_for(Isa::kScalar), pool, matrix, x);
  for (const KernelTable* kernels : tables_under_test()) {
    for (std::size_t tokens = 1; tokens <= kTokens; tokens += tokens < 40 ? 1 : 8) {
      ASSERT_TRUE(same_bits(product(*kernels, pool, matrix, first_tokens(x, tokens, columns)), first_tokens(want, tokens, kRows)))
          << kernels->name << ", " << tokens << " tokens";
    }
  }
}

TEST_P(EveryFormat, LongRowsGiveTheSameBits) {
  Xoshiro256 random(14);
  ThreadPool pool(1);
  constexpr std::size_t kRows = 16;
  constexpr std::size_t kTokens = 21;
  const std::size_t columns = columns_near(2400);
  const PackedMatrix matrix = pack(GetParam(), kRows, columns, random_file(GetParam(), kRows, columns, random));
  const std::vector<float> x = random_activations(kTokens * columns, random);
  const std::vector<float> want = product(kernels_for(Isa::kScalar), pool, matrix, x);
  for (const KernelTable* kernels : tables_under_test()) {
    ASSERT_TRUE(same_bits(product(*kernels, pool, matrix, x), want)) << kernels->name;
  }
}

TEST_P(EveryFormat, SelectedTokensGiveTheBitsOfTheirRows) {
  Xoshiro256 random(15);
  ThreadPool pool(1);
  constexpr std::size_t kRows = 16;
  constexpr std::array<std::uint32_t, 18> kChosen = {11, 2, 2, 0, 7, 8, 9, 3, 10, 1, 4, 6, 5, 11, 0, 3, 1, 9};
  const std::size_t columns = columns_near(1200);
  const PackedMatrix matrix = pack(GetParam(), kRows, columns, random_file(GetParam(), kRows, columns, random));
  const std::vector<float> x = random_activations(12 * columns, random);
  const std::vector<float> all = product(kernels_for(Isa::kScalar), pool, matrix, x);
  for (const KernelTable* kernels : tables_under_test()) {
    for (const std::size_t count : {std::size_t{3}, kChosen.size()}) {
      const Compute compute{*kernels, pool};
      Activations activations(12, columns);
      activations.assign(compute, activation_kind(GetParam()), x.data(), 12, columns, columns);
      activations.select({kChosen.data(), count});
      std::vector<float> out(count * kRows);
      linear(compute, matrix, activations, out.data(), kRows);
      for (std::size_t t = 0; t < count; ++t) {
        const std::vector<float> want(all.begin() + kChosen[t] * kRows, all.begin() + (kChosen[t] + 1) * kRows);
        ASSERT_TRUE(same_bits({out.begin() + static_cast<std::ptrdiff_t>(t * kRows), out.end()}, want)) << kernels->name << ", token " << t;
      }
    }
  }
}

TEST_P(EveryFormat, ResultsDoNotDependOnTheOtherTokensOrTheThreads) {
  Xoshiro256 random(10);
  ThreadPool one(1);
  ThreadPool three(3);
  const std::size_t columns = columns_near(96);
  constexpr std::size_t kRows = 150;
  constexpr std::size_t kTokens = 23;
  const PackedMatrix matrix = pack(GetParam(), kRows, columns, random_file(GetParam(), kRows, columns, random));
  const std::vector<float> x = random_activations(kTokens * columns, random);
  const KernelTable& kernels = kernels_for(available_isas().back());
  const std::vector<float> want = product(kernels, one, matrix, x);
  EXPECT_TRUE(same_bits(product(kernels, three, matrix, x), want));
  for (std::size_t t = 0; t < kTokens; ++t) {
    const std::vector<float> token(x.begin() + static_cast<std::ptrdiff_t>(t * columns),
                                   x.begin() + static_cast<std::ptrdiff_t>((t + 1) * columns));
    const std::vector<float> row(want.begin() + static_cast<std::ptrdiff_t>(t * kRows),
                                 want.begin() + static_cast<std::ptrdiff_t>((t + 1) * kRows));
    ASSERT_TRUE(same_bits(product(kernels, one, matrix, token), row)) << "token " << t;
  }
}

TEST(Linear, AOneHotTokenReadsTheWeightsOfItsColumn) {
  Xoshiro256 random(11);
  ThreadPool pool(1);
  constexpr std::size_t kRows = 21;
  constexpr std::size_t kColumns = 64;
  std::vector<float> weights(kRows * kColumns);
  for (float& w : weights) w = static_cast<float>(random.uniform());
  PackedMatrix matrix(Format::kF32, kRows, kColumns, "test");
  matrix.pack_rows(0, std::as_bytes(std::span<const float>(weights)));
  std::vector<float> x(kColumns, 0.0f);
  x[37] = 2.0f;
  for (const Isa isa : available_isas()) {
    const std::vector<float> out = product(kernels_for(isa), pool, matrix, x);
    for (std::size_t r = 0; r < kRows; ++r) EXPECT_EQ(out[r], 2.0f * weights[r * kColumns + 37]);
  }
}

TEST(Linear, Bf16WeightsCountFromTwoToTheMinus56OnEveryInstructionSet) {
  ThreadPool pool(1);
  constexpr std::size_t kRows = 16;
  constexpr std::size_t kColumns = 34;
  constexpr std::size_t kColumn = 33;
  constexpr std::array kLargestBelow = {0x1.FEp-57f, -0x1.FEp-57f, 0x1p-130f, -0.0f};
  constexpr std::array kSmallest = {0x1p-56f, -0x1p-56f, 0x1.02p-56f, 1.0f};
  std::vector<BF16> weights(kRows * kColumns);
  for (std::size_t r = 0; r < kRows; ++r) weights[r * kColumns + kColumn] = to_bf16(r < 8 ? kLargestBelow[r % 4] : kSmallest[r % 4]);
  PackedMatrix matrix(Format::kBF16, kRows, kColumns, "test");
  matrix.pack_rows(0, std::as_bytes(std::span<const BF16>(weights)));
  std::vector<float> x(kColumns, 0.0f);
  x[kColumn] = 2.0f;
  std::vector<const KernelTable*> tables = tables_under_test();
  tables.push_back(&kernels_for(Isa::kScalar));
  for (const KernelTable* table : tables) {
    const std::vector<float> out = product(*table, pool, matrix, x);
    for (std::size_t r = 0; r < kRows; ++r) EXPECT_EQ(out[r], r < 8 ? 0.0f : 2.0f * kSmallest[r % 4]) << table->name << ", row " << r;
  }
}

TEST(Linear, SeveralJobsEqualSeparateCallsAndTouchOnlyTheirRows) {
  Xoshiro256 random(12);
  ThreadPool pool(2);
  const Compute compute{kernels_for(selected_isa()), pool};
  constexpr std::size_t kColumns = 288;
  constexpr std::size_t kTokens = 6;
  constexpr std::size_t kStride = 500;
  const std::vector<float> x = random_activations(kTokens * kColumns, random);
  Activations activations(kTokens, kColumns);
  activations.assign(compute, ActivationKind::kBlock32, x.data(), kTokens, kColumns, kColumns);

  constexpr std::array<std::size_t, 3> kRows = {300, 31, 7};
  constexpr std::array kFormats = {Format::kQ8_0, Format::kQ4_1, Format::kQ8_0};
  std::vector<PackedMatrix> matrices;
  std::vector<std::vector<float>> outs(kRows.size(), std::vector<float>(kTokens * kStride, -7.0f));
  std::vector<LinearJob> jobs;
  for (std::size_t j = 0; j < kRows.size(); ++j) {
    matrices.push_back(pack(kFormats[j], kRows[j], kColumns, random_file(kFormats[j], kRows[j], kColumns, random)));
  }
  for (std::size_t j = 0; j < kRows.size(); ++j) jobs.push_back({&matrices[j], outs[j].data(), kStride});
  linear_jobs(compute, jobs, activations);

  for (std::size_t j = 0; j < kRows.size(); ++j) {
    std::vector<float> want(kTokens * kStride, -7.0f);
    linear(compute, matrices[j], activations, want.data(), kStride);
    EXPECT_TRUE(same_bits(outs[j], want));
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t i = kRows[j]; i < kStride; ++i) ASSERT_EQ(outs[j][t * kStride + i], -7.0f) << "row " << i << " is not of job " << j;
    }
  }
}

}  // namespace
}  // namespace quench
