#include "cli/bench_row.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace quench::cli {
namespace {

constexpr std::uint64_t kCache = 32 << 20;

/// 32 tokens of 1 GB each; the machine reads 20 GB/s.
BenchRow decode_row(double seconds) {
  BenchRow row{.test = {.kind = BenchTest::Kind::kDecode, .tokens = 32, .depth = 0},
               .threads = 2,
               .chunk = 512,
               .cost = {.weight_bytes = 32'000'000'000, .int8_operations = 64'000'000'000},
               .seconds = {},
               .roofline = {.bytes_per_second = 20e9, .int8_per_second = 400e9, .f32_per_second = 100e9}};
  row.seconds.add(seconds);
  return row;
}

TEST(BenchRow, RatesComeFromTheMedianOfTheRepetitions) {
  BenchRow row = decode_row(2.0);
  row.seconds.add(100.0);
  row.seconds.add(1.0);
  EXPECT_DOUBLE_EQ(row.tokens_per_second(), 16.0);
  EXPECT_DOUBLE_EQ(row.gigabytes_per_second(), 16.0);
  EXPECT_DOUBLE_EQ(row.gigaoperations_per_second(), 32.0);
  EXPECT_DOUBLE_EQ(row.read_share().value(), 0.8);
  EXPECT_DOUBLE_EQ(row.operation_share().value(), 0.08);
  EXPECT_DOUBLE_EQ(row.rates().max(), 32.0);
}

TEST(BenchRow, ReadingFasterThanTheProbeInvalidatesTheRun) {
  EXPECT_EQ(beyond_roofline(decode_row(1.61), kCache), "");
  EXPECT_NE(beyond_roofline(decode_row(1.59), kCache).find("tg32 with 2 threads read 20.13 GB/s"), std::string::npos);
}

TEST(BenchRow, WhatTheCacheHoldsMayBeReadFasterThanMemory) {
  EXPECT_EQ(beyond_roofline(decode_row(1.0), 251'000'000), "");
  EXPECT_NE(beyond_roofline(decode_row(1.0), 249'000'000), "");
}

TEST(BenchRow, ComputingFasterThanTheProbeInvalidatesTheRunWhateverTheCacheHolds) {
  BenchRow row = decode_row(0.15);
  row.cost.weight_bytes = 1;
  EXPECT_NE(beyond_roofline(row, kCache).find("computed"), std::string::npos);
  row.roofline = {};
  EXPECT_EQ(beyond_roofline(row, kCache), "");
}

TEST(BenchRow, APrefillReadsItsWorkingSetOnceAPass) {
  BenchRow row = decode_row(1.0);
  row.test = {.kind = BenchTest::Kind::kPrefill, .tokens = 513, .depth = 0};
  EXPECT_EQ(row.working_set_bytes(), 16'000'000'000u);
}

TEST(BenchTests, AreOrderedByDepthAndLeaveOutLengthsOfZero) {
  BenchOptions options;
  options.prompt = {0, 16};
  options.generate = {4};
  options.depths = {0, 128};
  std::string names;
  for (const BenchTest& test : bench_tests(options)) names += test.name() + " ";
  EXPECT_EQ(names, "pp16 tg4 pp16@d128 tg4@d128 ");
}

TEST(BenchTests, NothingToMeasureIsABadRequest) {
  BenchOptions options;
  options.prompt = {0};
  options.generate = {};
  EXPECT_THROW((void)bench_tests(options), Error);
}

}  // namespace
}  // namespace quench::cli
