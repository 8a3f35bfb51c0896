#include "cli/bench_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal.h"

namespace quench::cli {
namespace {

std::vector<Profile::Entry> by_time(const BenchRow& row) {
  std::vector<Profile::Entry> entries = row.profile;
  std::erase_if(entries, [](const Profile::Entry& entry) { return entry.seconds <= 0; });
  std::ranges::stable_sort(entries, std::ranges::greater{}, &Profile::Entry::seconds);
  return entries;
}

/// Tokens of all repetitions together.
double tokens_of(const BenchRow& row) { return static_cast<double>(row.test.tokens * row.seconds.values().size()); }

}  // namespace

std::string profile_table(const BenchRow& row) {
  double total = 0;
  for (const Profile::Entry& entry : row.profile) total += entry.seconds;
  std::string text = fmt::format("{}, {} threads, chunk {}\n{:<28} {:>10} {:>7} {:>12}\n", row.test.name(), row.threads, row.chunk,
                                 "region", "us/token", "%", "calls/token");
  for (const Profile::Entry& entry : by_time(row)) {
    text += fmt::format("{:<28} {:>10.2f} {:>7.1f} {:>12.2f}\n", entry.name, 1e6 * entry.seconds / tokens_of(row),
                        100 * entry.seconds / total, static_cast<double>(entry.calls) / tokens_of(row));
  }
  return text;
}

nlohmann::ordered_json profile_json(const BenchRow& row) {
  auto json = nlohmann::ordered_json::array();
  for (const Profile::Entry& entry : by_time(row)) {
    json.push_back({{"region", entry.name}, {"seconds", entry.seconds}, {"calls", entry.calls}});
  }
  return json;
}

double measure_join_seconds(ThreadPool& pool) {
  constexpr int kBatches = 5;
  constexpr int kJoins = 1000;
  double best = 1;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double start = now_seconds();
    for (int join = 0; join < kJoins; ++join) pool.run(static_cast<std::size_t>(pool.thread_count()), [](std::size_t, int) noexcept {});
    best = std::min(best, (now_seconds() - start) / kJoins);
  }
  return best;
}

}  // namespace quench::cli
