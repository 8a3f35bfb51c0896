#include "cli/bench_options.h"

#include <fmt/format.h>

#include "base/error.h"

namespace quench::cli {

std::string BenchTest::name() const {
  std::string name = fmt::format("{}{}", kind == Kind::kPrefill ? "pp" : "tg", tokens);
  if (sequences > 1) name += fmt::format("x{}", sequences);
  return depth > 0 ? fmt::format("{}@d{}", name, depth) : name;
}

std::vector<BenchTest> bench_tests(const BenchOptions& options) {
  std::vector<BenchTest> tests;
  for (const std::size_t depth : options.depths) {
    for (const std::size_t n : options.prompt) {
      if (n > 0) tests.push_back({.kind = BenchTest::Kind::kPrefill, .tokens = n, .depth = depth});
    }
    for (const std::size_t n : options.generate) {
      for (const std::size_t sequences : options.sequences) {
        if (n > 0) tests.push_back({.kind = BenchTest::Kind::kDecode, .tokens = n, .depth = depth, .sequences = sequences});
      }
    }
  }
  if (tests.empty()) throw_bad_request("bench: nothing to measure: -p and -n are both 0");
  return tests;
}

}  // namespace quench::cli
