#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench_row.h"

namespace quench::cli {

/// What a run was made on, and what it found.
struct BenchReport {
  std::string model;  ///< the file's name
  std::string processor;
  std::string isa;
  double load_seconds = 0;
  std::uint64_t weight_bytes = 0;         ///< as packed
  std::uint64_t cache_bytes = 0;          ///< of the keys and values that the tests hold at once
  std::uint64_t peak_resident_bytes = 0;  ///< without the probe's buffer
  std::uint64_t probe_bytes = 0;          ///< 0 = no roofline
  std::uint64_t last_level_cache_bytes = 0;
  double join_seconds = 0;  ///< of a join of all threads, the slowest pool's; measured for a profile
  std::vector<BenchRow> rows;

  /// What makes the run invalid, one line each.
  [[nodiscard]] std::vector<std::string> violations() const;
};

[[nodiscard]] std::string bench_table(const BenchReport& report);
/// A header and a line per row.
[[nodiscard]] std::string bench_csv(const BenchReport& report);
/// The whole run, `valid` and `violations` included.
[[nodiscard]] nlohmann::ordered_json bench_json(const BenchReport& report);
/// One row of it.
[[nodiscard]] nlohmann::ordered_json row_json(const BenchRow& row);
[[nodiscard]] nlohmann::ordered_json roofline_json(const Roofline& roofline);

}  // namespace quench::cli
