#include "cli/bench_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "cli/terminal.h"

namespace quench::cli {
namespace {

std::vector<Profile::Entry> by_time(const BenchRow& row) {
  std::vector<Profile::Entry> entries = row.profile;
  std::erase_if(entries, [](const Profile::Entry& entry) { return entry.seconds <= 0; });
  std::ranges::sort(entries, std::ranges::greater{}, &Profile::Entry::seconds);
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
  constexpr int kJoins = 201;
  const int threads = pool.thread_count();
  Samples seconds;
  for (int join = 0; join < kJoins; ++join) {
    // A pool does not wait for threads that came too late for any work: here each has to come for the others to go on.
    std::atomic<int> arrived{0};
    const double start = now_seconds();
    pool.run(static_cast<std::size_t>(threads), [&](std::size_t, int) noexcept {
      arrived.fetch_add(1);
      while (arrived.load(std::memory_order_relaxed) < threads) std::this_thread::yield();
    });
    seconds.add(now_seconds() - start);
  }
  return seconds.median();
}

}  // namespace quench::cli
