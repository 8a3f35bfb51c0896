#include "cli/bench_row.h"

#include <fmt/format.h>

#include "base/checked.h"

namespace quench::cli {

double BenchRow::tokens_per_second() const { return static_cast<double>(test.all_tokens()) / seconds.median(); }

double BenchRow::gigabytes_per_second() const { return static_cast<double>(cost.bytes()) / seconds.median() / 1e9; }

double BenchRow::gigaoperations_per_second() const { return static_cast<double>(cost.operations()) / seconds.median() / 1e9; }

std::optional<double> BenchRow::read_share() const { return cli::read_share(cost, seconds.median(), roofline); }

std::optional<double> BenchRow::operation_share() const { return cli::operation_share(cost, seconds.median(), roofline); }

std::uint64_t BenchRow::working_set_bytes() const {
  const std::size_t passes = test.kind == BenchTest::Kind::kDecode ? test.tokens : ceil_div(test.tokens, chunk);
  return cost.bytes() / passes;
}

Samples BenchRow::rates() const {
  Samples rates;
  for (const double second : seconds.values()) rates.add(static_cast<double>(test.all_tokens()) / second);
  return rates;
}

std::string beyond_roofline(const BenchRow& row, std::uint64_t last_level_cache_bytes) {
  // A quarter of a pass from the cache would lift a rate above what memory gives.
  constexpr std::uint64_t kCaches = 4;
  if (row.working_set_bytes() >= kCaches * last_level_cache_bytes && row.read_share().value_or(0) > 1) {
    return fmt::format("{} with {} threads read {:.2f} GB/s, more than the {:.2f} GB/s of the probe", row.test.name(), row.threads,
                       row.gigabytes_per_second(), row.roofline.bytes_per_second / 1e9);
  }
  if (row.operation_share().value_or(0) > 1) {
    return fmt::format("{} with {} threads computed {:.1f} GOP/s, {:.1f} % of what the probe says is possible", row.test.name(),
                       row.threads, row.gigaoperations_per_second(), 100 * row.operation_share().value());
  }
  return {};
}

}  // namespace quench::cli
