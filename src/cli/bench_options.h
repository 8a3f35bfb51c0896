#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/model_options.h"

namespace quench::cli {

enum class BenchOutput { kTable, kJson, kCsv };

struct BenchOptions {
  ModelOptions model;
  std::vector<std::size_t> prompt = {512};
  std::vector<std::size_t> generate = {32};
  std::vector<std::size_t> depths = {0};
  std::vector<std::size_t> sequences = {1};
  std::vector<int> threads = {0};  ///< 0 = physical cores
  std::vector<std::size_t> chunks = {512};
  int repetitions = 3;
  std::optional<std::uint64_t> probe_mib;  ///< what the roofline probe reads; 0 = no roofline; nothing = read_probe_bytes()
  bool paced = false;
  bool profile = false;
  BenchOutput output = BenchOutput::kTable;
};

/// One measurement: `tokens` of a prompt at once, or one by one, after `depth` others; the latter for several sequences side by side.
struct BenchTest {
  enum class Kind { kPrefill, kDecode };
  Kind kind;
  std::size_t tokens;
  std::size_t depth;
  std::size_t sequences = 1;  ///< kDecode: each gets `tokens`

  [[nodiscard]] std::size_t all_tokens() const noexcept { return tokens * sequences; }
  /// "pp512", "tg32@d4096", "tg32x16"
  [[nodiscard]] std::string name() const;
};

/// By depth; at each the prompts, then the generations; lengths of 0 are left out. Throws Error(kBadRequest) when none is left.
[[nodiscard]] std::vector<BenchTest> bench_tests(const BenchOptions& options);

}  // namespace quench::cli
