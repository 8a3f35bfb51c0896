// Time of one sampled token over a Qwen3-sized vocabulary, one thread. Prints the median and the 99th percentile of many rows,
// in processor time, so that a busy machine measures the same.
//
//   sampler_bench            all settings, 151,936 logits

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "sample/sampler.h"

namespace {

constexpr std::size_t kVocab = 151936;
constexpr int kRows = 8;  // 4.9 MB: as in decoding, a row comes from memory, not from the first cache levels
constexpr int kTokens = 400;

/// Logits as models give them: roughly normal, spread 3, and a few tokens well above the rest.
std::vector<std::vector<float>> make_rows() {
  quench::Xoshiro256 random(1);
  std::vector<std::vector<float>> rows(kRows, std::vector<float>(kVocab));
  for (auto& row : rows) {
    for (auto& logit : row) {
      double sum = -6.0;
      for (int i = 0; i < 12; ++i) sum += random.uniform();
      logit = static_cast<float>(3.0 * sum);
    }
    for (int i = 0; i < 30; ++i) row[random.below(kVocab)] = static_cast<float>(12.0 + 8.0 * random.uniform());
  }
  return rows;
}

double thread_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

void measure(std::string_view name, const quench::SamplerSettings& settings, const std::vector<std::vector<float>>& rows) {
  quench::Sampler sampler(settings, kVocab);
  std::vector<double> times;
  for (int i = 0; i < kTokens; ++i) {
    const double start = thread_microseconds();
    static_cast<void>(sampler.next(rows[static_cast<std::size_t>(i % kRows)]));
    times.push_back(thread_microseconds() - start);
  }
  std::ranges::sort(times);
  fmt::print("{:<44} median {:7.1f} us   p99 {:7.1f} us\n", name, times[kTokens / 2], times[kTokens * 99 / 100]);
}

}  // namespace

int main() {
  const auto rows = make_rows();
  quench::SamplerSettings settings;
  settings.seed = 1;
  measure("greedy", settings, rows);
  settings.temperature = 0.6;
  settings.top_k = 20;
  settings.top_p = 0.95;
  measure("top-k 20, top-p 0.95", settings, rows);
  settings.repeat_penalty = 1.1;
  measure("top-k 20, top-p 0.95, repeat penalty", settings, rows);
  settings.repeat_penalty = 1.0;
  settings.top_k = 1000;
  measure("top-k 1000, top-p 0.95", settings, rows);
  settings.top_k = 0;
  measure("top-p 0.95 of the whole vocabulary", settings, rows);
  settings.top_p = 0.9999;
  measure("top-p 0.9999 of the whole vocabulary", settings, rows);
  settings.top_p = 1.0;
  settings.min_p = 0.05;
  measure("min-p 0.05", settings, rows);
  settings.min_p = 0.0;
  settings.temperature = 1.0;
  measure("temperature alone", settings, rows);
  settings.mirostat = 2;
  measure("mirostat 2", settings, rows);
  settings.mirostat = 0;
  settings.typ_p = 0.95;
  measure("typical 0.95 of the whole vocabulary", settings, rows);
}
