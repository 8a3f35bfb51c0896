#include "sample/token_window.h"

#include <algorithm>
#include <utility>

namespace quench {

void TokenWindow::push(Token token) {
  history_.push_back(token);
  if (window_ == 0) return;
  if (const auto found = counts_.find(token); found != counts_.end()) {
    ++found->second;
  } else if (spare_.empty()) {
    counts_.emplace(token, 1);
  } else {
    auto node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = token;
    node.mapped() = 1;
    counts_.insert(std::move(node));
  }
  if (window_ < 0 || history_.size() <= static_cast<std::size_t>(window_)) return;
  const auto leaving = counts_.find(history_[history_.size() - 1 - static_cast<std::size_t>(window_)]);
  if (--leaving->second == 0) spare_.push_back(counts_.extract(leaving));
}

void TokenWindow::reserve(std::size_t tokens) {
  history_.reserve(tokens);
  if (window_ <= 0) return;
  // One more than the window: a token comes before another leaves.
  const std::size_t most = std::min(tokens, static_cast<std::size_t>(window_) + 1);
  counts_.reserve(most);
  spare_.reserve(most);
  std::unordered_map<Token, int> nodes;
  for (Token token = 0; counts_.size() + spare_.size() < most; ++token) {
    nodes.emplace(token, 0);
    spare_.push_back(nodes.extract(token));
  }
}

void TokenWindow::assign(std::span<const Token> tokens) {
  history_.clear();
  while (!counts_.empty()) spare_.push_back(counts_.extract(counts_.begin()));
  for (const Token token : tokens) push(token);
}

}  // namespace quench
