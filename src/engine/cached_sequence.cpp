#include "engine/cached_sequence.h"

#include <algorithm>

namespace quench {

std::size_t CachedSequence::reuse(std::span<const Token> prompt) {
  const auto [mine, theirs] = std::ranges::mismatch(tokens_, prompt);
  const auto common = static_cast<std::size_t>(mine - tokens_.begin());
  truncate(std::min(common, prompt.empty() ? 0 : prompt.size() - 1));
  return length();
}

void CachedSequence::truncate(std::size_t n) {
  if (n >= tokens_.size()) return;
  if (n < kv_.earliest_truncation()) n = 0;
  kv_.truncate(n);
  tokens_.resize(n);
}

std::span<const float> CachedSequence::append(Forward& forward, std::span<const Token> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  try {
    return forward.prefill(kv_, kv_.length(), tokens);
  } catch (...) {
    tokens_.resize(kv_.length());
    throw;
  }
}

}  // namespace quench
