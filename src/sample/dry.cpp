#include "sample/dry.h"

#include <algorithm>

namespace quench {
namespace {

/// match[k]: length of the longest common prefix of `text` and text[k..]; match[0] is 0.
std::vector<std::size_t> z_function(std::span<const Token> text) {
  std::vector<std::size_t> match(text.size(), 0);
  std::size_t left = 0;
  std::size_t right = 0;  // [left, right) is the match that reaches farthest
  for (std::size_t k = 1; k < text.size(); ++k) {
    std::size_t n = k < right ? std::min(match[k - left], right - k) : 0;
    while (k + n < text.size() && text[n] == text[k + n]) ++n;
    match[k] = n;
    if (k + n > right) {
      left = k;
      right = k + n;
    }
  }
  return match;
}

}  // namespace

Dry::Dry(const SamplerSettings& settings)
    : multiplier_(settings.dry_multiplier),
      base_(settings.dry_base),
      allowed_(static_cast<std::size_t>(std::max(1, settings.dry_allowed_length))),
      window_(settings.dry_penalty_last_n) {
  for (const auto& breaker : settings.dry_breakers) {
    if (!breaker.empty()) tails_[breaker.front()].emplace_back(breaker.begin() + 1, breaker.end());
  }
}

/// How many of the last tokens a repetition may span: what follows the last breaker, or all of them.
///
/// recent: newest first
std::size_t Dry::reach(std::span<const Token> recent) const {
  for (std::size_t i = 0; i < recent.size(); ++i) {
    const auto found = tails_.find(recent[i]);
    if (found == tails_.end()) continue;
    std::size_t longest = 0;  // tokens, head included
    for (const auto& tail : found->second) {
      if (tail.size() < longest || tail.size() > i) continue;
      const auto after_head = recent.rend() - static_cast<std::ptrdiff_t>(i);
      if (std::equal(tail.begin(), tail.end(), after_head)) longest = tail.size() + 1;
    }
    if (longest > 0) return i + 1 - longest;
  }
  return recent.size();
}

double Dry::penalty(std::size_t excess) const {
  constexpr double kLargest = 1e37;  // a logit minus this stays a finite float
  double result = multiplier_;
  for (std::size_t i = 0; i < excess && result < kLargest && base_ > 1.0; ++i) result *= base_;
  return std::min(result, kLargest);
}

std::unordered_map<Token, double> Dry::penalties(std::span<const Token> history) const {
  std::unordered_map<Token, double> result;
  std::size_t window = history.size();
  if (window_ >= 0) window = std::min(window, static_cast<std::size_t>(window_));
  if (!active() || window <= allowed_) return result;

  const std::vector<Token> recent(history.rbegin(), history.rbegin() + static_cast<std::ptrdiff_t>(window));
  const std::size_t limit = reach(recent);
  if (limit < allowed_) return result;

  std::unordered_map<Token, std::size_t> longest;
  const auto match = z_function(recent);
  for (std::size_t k = 1; k < recent.size(); ++k) {
    const std::size_t length = std::min(match[k], limit);
    if (length < allowed_) continue;
    auto& best = longest[recent[k - 1]];
    best = std::max(best, length);
  }
  for (const auto& [token, length] : longest) {
    const auto breaker = tails_.find(token);
    const bool alone = breaker != tails_.end() && std::ranges::any_of(breaker->second, &std::vector<Token>::empty);
    if (!alone) result.emplace(token, penalty(length - allowed_));
  }
  return result;
}

}  // namespace quench
