#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/token.h"

namespace quench {

/// A constraint on what may come next: a grammar, a schema, a list of forbidden words. The sampler calls `process` on every row
/// before any other stage, and `commit` exactly once per token that becomes part of the text.
class LogitProcessor {
 public:
  virtual ~LogitProcessor() = default;

  /// Changes the row in place; -infinity forbids a token. May be called more than once for the same state and must then do the same.
  ///
  /// logits  [vocab]
  /// history prompt and answer so far, oldest first
  virtual void process(std::span<float> logits, std::span<const Token> history) = 0;
  virtual void commit(Token token) = 0;
  /// Appends the tokens, at most `most`, that alone may come next, one after the other; nothing where there is a choice. They save time and
  /// decide nothing: what is drawn is what `process` leaves.
  virtual void forced(std::size_t /*most*/, std::vector<Token>& /*tokens*/) const {}
  /// A copy with its own state, at the same point of the text.
  [[nodiscard]] virtual std::unique_ptr<LogitProcessor> clone() const = 0;
};

}  // namespace quench
