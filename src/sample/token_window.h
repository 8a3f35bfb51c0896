#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/token.h"

namespace quench {

/// The text so far, and how often each token occurs among its last `window` tokens. A push costs the same whatever the window, and
/// allocates nothing within the reserved room.
class TokenWindow {
 public:
  /// window: 0 counts nothing, negative counts everything
  explicit TokenWindow(int window) : window_(window) {}
  TokenWindow(const TokenWindow& other) : window_(other.window_), history_(other.history_), counts_(other.counts_) {}
  TokenWindow& operator=(const TokenWindow& other) { return *this = TokenWindow(other); }
  TokenWindow(TokenWindow&&) noexcept = default;
  TokenWindow& operator=(TokenWindow&&) noexcept = default;
  ~TokenWindow() = default;

  /// Room for that many tokens, and for counting those in the window unless that is everything.
  void reserve(std::size_t tokens);

  void push(Token token);
  void assign(std::span<const Token> tokens);

  [[nodiscard]] std::span<const Token> history() const noexcept { return history_; }
  [[nodiscard]] const std::unordered_map<Token, int>& counts() const noexcept { return counts_; }

 private:
  int window_;
  std::vector<Token> history_;
  std::unordered_map<Token, int> counts_;
  std::vector<std::unordered_map<Token, int>::node_type> spare_;  ///< of tokens that left the window
};

}  // namespace quench
