#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/token.h"

namespace quench {

/// The text so far, and how often each token occurs among its last `window` tokens. A push costs the same whatever the window.
class TokenWindow {
 public:
  /// window: 0 counts nothing, negative counts everything
  explicit TokenWindow(int window) : window_(window) {}

  void push(Token token);
  void assign(std::span<const Token> tokens);

  [[nodiscard]] std::span<const Token> history() const noexcept { return history_; }
  [[nodiscard]] const std::unordered_map<Token, int>& counts() const noexcept { return counts_; }

 private:
  int window_;
  std::vector<Token> history_;
  std::unordered_map<Token, int> counts_;
};

}  // namespace quench
