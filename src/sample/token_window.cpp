#include "sample/token_window.h"

namespace quench {

void TokenWindow::push(Token token) {
  history_.push_back(token);
  if (window_ == 0) return;
  ++counts_[token];
  if (window_ < 0 || history_.size() <= static_cast<std::size_t>(window_)) return;
  const auto leaving = counts_.find(history_[history_.size() - 1 - static_cast<std::size_t>(window_)]);
  if (--leaving->second == 0) counts_.erase(leaving);
}

void TokenWindow::assign(std::span<const Token> tokens) {
  history_.clear();
  counts_.clear();
  for (const Token token : tokens) push(token);
}

}  // namespace quench
