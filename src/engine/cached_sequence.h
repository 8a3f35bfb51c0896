#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/token.h"
#include "model/forward.h"
#include "model/kv_sequence.h"

namespace quench {

/// A sequence in the KV cache together with the tokens it holds.
class CachedSequence {
 public:
  explicit CachedSequence(KvCache& cache) : kv_(cache) {}

  [[nodiscard]] std::span<const Token> tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::size_t length() const noexcept { return tokens_.size(); }
  [[nodiscard]] const KvSequence& kv() const noexcept { return kv_; }

  /// Keeps the longest common prefix with `prompt`, at most prompt.size() - 1 tokens (logits are not cached), and drops the rest; a
  /// windowed model may have to drop everything. Returns how many tokens stay.
  std::size_t reuse(std::span<const Token> prompt);
  /// Keeps `n` tokens, or none when a window has already released what they need.
  void truncate(std::size_t n);
  /// Appends tokens; the logits after the last one, valid until the next call of `forward`. After an error the sequence holds what the
  /// cache holds.
  [[nodiscard]] std::span<const float> append(Forward& forward, std::span<const Token> tokens);

 private:
  KvSequence kv_;
  std::vector<Token> tokens_;
};

}  // namespace quench
