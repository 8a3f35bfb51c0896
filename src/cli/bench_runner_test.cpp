#include "cli/bench_runner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/profile.h"
#include "engine/tiny_model.h"

namespace quench::cli {
namespace {

using Kind = BenchTest::Kind;

const std::vector<BenchTest> kTests = {{.kind = Kind::kPrefill, .tokens = 100, .depth = 0},
                                       {.kind = Kind::kDecode, .tokens = 3, .depth = 70},
                                       {.kind = Kind::kPrefill, .tokens = 5, .depth = 70},
                                       {.kind = Kind::kDecode, .tokens = 4, .depth = 70, .sequences = 5},
                                       {.kind = Kind::kDecode, .tokens = 2, .depth = 300}};

TEST(BenchRunner, TestsRunInAnyOrderAndAgainWithinTheRoomMadeForThem) {
  for (const char* family : {"qwen3", "gemma3"}) {  // gemma3 has windows: what lies behind them cannot be truncated to
    ThreadPool pool(2);
    const Compute compute{kernels_for(selected_isa()), pool};
    const Model& model = TinyModel::of(family).model();
    BenchRunner runner(model, model.kv_layout(), compute, 32, kTests);
    EXPECT_EQ(runner.chunk(), 32u);
    for (int round = 0; round < 2; ++round) {
      for (const BenchTest& test : kTests) EXPECT_GT(runner.run(test), 0.0) << family << " " << test.name();
      EXPECT_GT(runner.run(kTests.back()), 0.0);
    }
  }
}

TEST(BenchRunner, AProfileNamesTheRegionsOfTheForwardPassAndAddsUpToTheTimeMeasured) {
  ThreadPool pool(1);
  Profile profile;
  const Model& model = TinyModel::of("qwen3").model();
  BenchRunner runner(model, model.kv_layout(), {kernels_for(selected_isa()), pool, &profile}, 512, kTests);
  for (const Profile::Entry& entry : profile.entries()) EXPECT_EQ(entry.calls, 0u) << entry.name << " during the warm-up";
  const double seconds = runner.run(kTests[1]);
  double sum = 0;
  for (const Profile::Entry& entry : profile.entries()) sum += entry.seconds;
  EXPECT_LE(sum, seconds);
  for (const char* name : {"embed", "norm", "qkv q8_0", "quantize", "append and attention", "attention output q8_0", "gate and up q8_0",
                           "activation", "down q8_0", "residual", "head q8_0", "sampler"}) {
    const auto entries = profile.entries();
    const auto found = std::ranges::find(entries, name, &Profile::Entry::name);
    ASSERT_NE(found, entries.end()) << name;
    EXPECT_GT(found->calls, 0u) << name;
  }
}

TEST(BenchRunner, ATestThatDoesNotFitTheMemoryIsRefusedWithBothSizes) {
  ThreadPool pool(1);
  const Model& model = TinyModel::of("qwen3").model();
  const std::vector<BenchTest> tests = {{.kind = Kind::kDecode, .tokens = std::size_t{1} << 40, .depth = 0}};
  try {
    const BenchRunner runner(model, model.kv_layout(), {kernels_for(selected_isa()), pool}, 512, tests);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadRequest);
    EXPECT_NE(std::string(error.what()).find("1099511627776 positions"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace quench::cli
