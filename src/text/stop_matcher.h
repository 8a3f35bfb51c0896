#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quench {

/// Finds the first of several stop texts in a stream, whatever the pieces it comes in. Text is let through at once, except for the
/// longest suffix that may still become a stop; nothing of a stop that matched is ever let through.
///
/// Of several stops the one that is complete first wins, and of those complete at the same byte the longest: the result does not depend
/// on where the pieces are cut.
class StopMatcher {
 public:
  /// Throws Error(kBadRequest) for an empty stop.
  explicit StopMatcher(std::vector<std::string> stops);

  /// The text now known to be outside any stop. Once a stop has matched, nothing more.
  [[nodiscard]] std::string push(std::string_view text);
  /// What was held back, when the stream ends without a stop.
  [[nodiscard]] std::string flush();

  /// Index of the stop that matched.
  [[nodiscard]] std::optional<std::size_t> matched() const noexcept { return matched_; }

 private:
  [[nodiscard]] std::size_t held_suffix() const;

  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::size_t> matched_;
};

}  // namespace quench
