#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "engine/prefix_cache.h"
#include "engine/simulated_backend.h"

namespace quench {

inline constexpr std::uint64_t kPageBytes = 1024;

inline std::vector<Token> tokens_from(Token first, std::size_t n) {
  std::vector<Token> tokens(n);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline std::vector<Token> operator+(std::vector<Token> left, const std::vector<Token>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// A prefix cache whose pages hold the tokens themselves, so that what is found can be read back. For tests.
class TokenPages {
 public:
  explicit TokenPages(std::uint64_t budget_bytes, std::vector<std::size_t> windows = {0})
      : cache(SimulatedBackend::layout(windows), {.budget_bytes = budget_bytes, .context = 100'000}), prefix(cache) {}

  void append(KvSequence& sequence, const std::vector<Token>& all) {
    const SequenceTokens request{&sequence, std::span(all).subspan(sequence.length()), Wanted::kNone};
    backend_.step({&request, 1}, [](std::size_t, std::size_t, std::span<const float>) {});
  }
  /// What a finished request leaves.
  void keep(const std::vector<Token>& tokens) {
    KvSequence sequence = prefix.find(std::span(tokens).first(tokens.size() - 1));
    append(sequence, tokens);
    prefix.insert(tokens, sequence, true);
  }
  /// The logits after `tokens` when their longest resident prefix is used, or none of it.
  std::vector<float> logits(const std::vector<Token>& tokens, bool reuse) {
    KvSequence sequence = reuse ? prefix.find(std::span(tokens).first(tokens.size() - 1)) : KvSequence(cache);
    const SequenceTokens request{&sequence, std::span(tokens).subspan(sequence.length()), Wanted::kLast};
    std::vector<float> logits;
    backend_.step({&request, 1}, [&](std::size_t, std::size_t, std::span<const float> row) { logits.assign(row.begin(), row.end()); });
    return logits;
  }

  KvCache cache;
  PrefixCache prefix;

 private:
  SimulatedBackend backend_{SimulatedMachine{.chunk = 100'000}};
};

}  // namespace quench
