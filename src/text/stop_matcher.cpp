#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace quench {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  if (std::ranges::any_of(stops_, &std::string::empty)) throw_bad_request("stop: a stop text is empty");
}

std::string StopMatcher::push(std::string_view text) {
  if (matched_) return {};
  held_ += text;
  std::size_t start = 0;
  std::size_t end = std::string::npos;
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const auto at = held_.find(stops_[i]);
    if (at == std::string::npos) continue;
    const auto its_end = at + stops_[i].size();
    if (its_end > end || (its_end == end && at >= start)) continue;
    start = at;
    end = its_end;
    matched_ = i;
  }
  const std::size_t out = matched_ ? start : held_.size() - held_suffix();
  std::string released = held_.substr(0, out);
  held_ = matched_ ? std::string() : held_.substr(out);
  return released;
}

/// Length of the longest suffix of held_ that is a proper prefix of a stop.
std::size_t StopMatcher::held_suffix() const {
  std::size_t longest = 0;
  for (const auto& stop : stops_) {
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) longest = n;
    }
  }
  return longest;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace quench
