#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/profile.h"
#include "cli/bench_options.h"
#include "cli/roofline.h"
#include "cli/samples.h"
#include "model/step_cost.h"

namespace quench::cli {

/// What was measured of one test with one number of threads and one chunk size.
struct BenchRow {
  BenchTest test;
  int threads = 0;
  std::size_t chunk = 0;
  StepCost cost;                          ///< of one repetition
  Samples seconds;                        ///< by repetition
  Roofline roofline;                      ///< of these threads, in this run
  std::vector<Profile::Entry> profile{};  ///< of all repetitions together; empty = not asked for

  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] double gigabytes_per_second() const;
  /// 10^9 operations a second.
  [[nodiscard]] double gigaoperations_per_second() const;
  [[nodiscard]] std::optional<double> read_share() const;
  [[nodiscard]] std::optional<double> operation_share() const;
  /// What one pass over the weights reads.
  [[nodiscard]] std::uint64_t working_set_bytes() const;
  /// Tokens a second of each repetition.
  [[nodiscard]] Samples rates() const;
};

/// Says how a row exceeds its roofline, or nothing when it does not. No kernel can: then the roofline was measured on a busier machine, or
/// the count is wrong. Reads are judged only when the last-level cache cannot hold a good part of what a pass reads.
[[nodiscard]] std::string beyond_roofline(const BenchRow& row, std::uint64_t last_level_cache_bytes);

}  // namespace quench::cli
