#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "cli/bench_options.h"
#include "kernels/compute.h"
#include "model/forward.h"
#include "model/kv_cache.h"
#include "model/kv_sequence.h"
#include "sample/sampler.h"

namespace quench::cli {

/// Runs tests with one number of threads and one chunk size. Each depth is filled once: a test works on a fork of that sequence, which
/// shares its pages.
class BenchRunner {
 public:
  /// Makes room for every one of `tests`, and touches weights, scratch and code once. `model` and `compute` outlive this.
  BenchRunner(const Model& model, const KvLayout& layout, const Compute& compute, std::size_t chunk, std::span<const BenchTest> tests);
  BenchRunner(const BenchRunner&) = delete;
  BenchRunner& operator=(const BenchRunner&) = delete;

  /// Seconds of one repetition. With a profile in `compute`, that gets the regions, and each decoded token is sampled too.
  [[nodiscard]] double run(const BenchTest& test);

  [[nodiscard]] std::size_t chunk() const noexcept { return forward_.chunk(); }
  /// Of the pages that the tests' sequences take together.
  [[nodiscard]] std::uint64_t cache_bytes() const noexcept { return cache_.budget_bytes(); }

 private:
  void warm_up();
  /// The sequence that holds the first `depth` tokens.
  [[nodiscard]] const KvSequence& filled(std::size_t depth);

  void decode(KvSequence& sequence, std::span<const Token> tokens);
  void decode_side_by_side(std::span<KvSequence> sequences, std::span<const Token> tokens);
  void sample(std::span<const float> logits);

  Profile* profile_;
  Forward forward_;
  KvCache cache_;
  std::map<std::size_t, KvSequence> by_depth_;
  std::vector<Token> tokens_;
  std::optional<Sampler> sampler_;  ///< only where there is a profile
};

}  // namespace quench::cli
