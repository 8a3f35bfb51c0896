#include "cli/bench_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/bench_profile.h"

namespace quench::cli {
namespace {

BenchReport report_of(double decode_seconds) {
  const Roofline roofline{.bytes_per_second = 20e9, .int8_per_second = 400e9, .f32_per_second = 100e9};
  BenchReport report{
      .model = "model, the \"first\".gguf", .processor = "some processor", .isa = "avx2", .probe_bytes = 1 << 30, .rows = {}};
  report.rows.push_back({.test = {.kind = BenchTest::Kind::kPrefill, .tokens = 512, .depth = 0},
                         .threads = 2,
                         .chunk = 256,
                         .cost = {.weight_bytes = 2'000'000'000, .int8_operations = 200'000'000'000},
                         .seconds = {},
                         .roofline = roofline});
  report.rows.push_back({.test = {.kind = BenchTest::Kind::kDecode, .tokens = 32, .depth = 4096},
                         .threads = 2,
                         .chunk = 256,
                         .cost = {.weight_bytes = 30'000'000'000, .cache_bytes = 2'000'000'000},
                         .seconds = {},
                         .roofline = roofline});
  for (const double factor : {1.0, 2.0, 0.5}) {
    report.rows[0].seconds.add(factor);
    report.rows[1].seconds.add(factor * decode_seconds);
  }
  return report;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(BenchReport, JsonHoldsWhatTheRunMeasured) {
  const auto json = bench_json(report_of(2.0));
  EXPECT_EQ(json["isa"], "avx2");
  EXPECT_TRUE(json["valid"].get<bool>());
  ASSERT_EQ(json["results"].size(), 2u);
  const auto& decode = json["results"][1];
  EXPECT_EQ(decode["test"], "tg32@d4096");
  EXPECT_EQ(decode["depth"], 4096);
  EXPECT_DOUBLE_EQ(decode["tokens_per_second"].get<double>(), 16.0);
  EXPECT_DOUBLE_EQ(decode["gigabytes_per_second"].get<double>(), 16.0);
  EXPECT_DOUBLE_EQ(decode["read_share"].get<double>(), 0.8);
  EXPECT_EQ(decode["repetitions"], (std::vector<double>{16, 8, 32}));
  EXPECT_EQ(decode["roofline"]["bytes_per_second"], 20e9);
  EXPECT_DOUBLE_EQ(json["results"][0]["operation_share"].get<double>(), 0.5);
}

TEST(BenchReport, JsonHasNullsWhereNoRooflineWasMeasured) {
  BenchReport report = report_of(2.0);
  for (BenchRow& row : report.rows) row.roofline = {};
  const auto json = bench_json(report);
  EXPECT_TRUE(json["results"][0]["read_share"].is_null());
  EXPECT_TRUE(json["results"][0]["operation_share"].is_null());
  EXPECT_TRUE(json["valid"].get<bool>());
}

TEST(BenchReport, ARateAboveTheRooflineIsNamedAndMakesTheRunInvalid) {
  const BenchReport report = report_of(1.5);
  ASSERT_EQ(report.violations().size(), 1u);
  EXPECT_NE(report.violations()[0].find("tg32@d4096"), std::string::npos);
  EXPECT_FALSE(bench_json(report)["valid"].get<bool>());
}

TEST(BenchReport, CsvHasAsManyFieldsInEveryLineAsInTheHeaderAndQuotesNames) {
  const auto lines = lines_of(bench_csv(report_of(2.0)));
  ASSERT_EQ(lines.size(), 3u);
  const std::string quoted = "\"model, the \"\"first\"\".gguf\"";
  EXPECT_TRUE(lines[1].starts_with(quoted + ",some processor,avx2,2,256,pp512,0,512,1,3,512,256,1024,"));
  const auto commas = [](const std::string& line) { return std::ranges::count(line, ','); };
  EXPECT_EQ(commas(lines[1]), commas(lines[0]) + 1);  // the one inside the name
  EXPECT_EQ(commas(lines[2]), commas(lines[0]) + 1);
}

TEST(BenchReport, TheTableShowsRatesSharesAndTheRoofline) {
  const std::string table = bench_table(report_of(2.0));
  for (const char* part : {"avx2 on some processor", "pp512", "tg32@d4096", "16.00", "80.0", "50.0",
                           "roofline, 2 threads: reads 20.00 GB/s", "int8 dot products 400 GOP/s", "peak resident memory"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " is not in\n" << table;
  }
  BenchReport without = report_of(2.0);
  without.probe_bytes = 0;
  EXPECT_EQ(bench_table(without).find("roofline"), std::string::npos);
}

TEST(BenchReport, AProfileIsShownByTimeAndAddsUpToAHundredPerCent) {
  BenchReport report = report_of(2.0);
  report.rows[1].profile = {{.name = "other", .seconds = 0.96, .calls = 0},
                            {.name = "down q8_0", .seconds = 2.88, .calls = 96},
                            {.name = "never entered", .seconds = 0, .calls = 0}};
  const std::string table = bench_table(report);
  EXPECT_NE(table.find("down q8_0                      30000.00    75.0         1.00"), std::string::npos) << table;
  EXPECT_LT(table.find("down q8_0"), table.find("other "));
  EXPECT_EQ(table.find("never entered"), std::string::npos);
  const auto json = bench_json(report);
  EXPECT_FALSE(json["results"][0].contains("profile"));
  EXPECT_EQ(json["results"][1]["profile"][0]["region"], "down q8_0");
  EXPECT_EQ(json["results"][1]["profile"].size(), 2u);
}

TEST(BenchProfile, AJoinOfAllThreadsTakesTimeAndEnds) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    EXPECT_GT(measure_join_seconds(pool), 0.0);
  }
}

}  // namespace
}  // namespace quench::cli
