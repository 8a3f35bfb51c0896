#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/thread_pool.h"
#include "cli/bench_row.h"

namespace quench::cli {

/// Where the time of a row's repetitions went, by region of the forward pass: time a token, share, calls a token. The most expensive
/// first; regions that were never entered are left out.
[[nodiscard]] std::string profile_table(const BenchRow& row);
[[nodiscard]] nlohmann::ordered_json profile_json(const BenchRow& row);

/// Seconds that a parallel region takes in which every thread only arrives, while the pool is awake: the median of many.
[[nodiscard]] double measure_join_seconds(ThreadPool& pool);

}  // namespace quench::cli
