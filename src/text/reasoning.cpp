#include "text/reasoning.h"

#include <algorithm>

namespace quench {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

std::string_view without_leading(std::string_view text, std::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
  return text;
}

bool starts_reasoning(std::string_view answer) { return without_leading(answer, " \t\r\n").starts_with(kOpen); }

}  // namespace

std::string_view without_reasoning(std::string_view answer) {
  const auto close = answer.rfind(kClose);
  if (close != std::string_view::npos) return without_leading(answer.substr(close + kClose.size()), "\n");
  return starts_reasoning(answer) ? std::string_view() : answer;
}

std::string_view without_leading_reasoning(std::string_view answer) {
  if (!starts_reasoning(answer)) return answer;
  const auto close = answer.find(kClose);
  if (close == std::string_view::npos) return {};
  return without_leading(answer.substr(close + kClose.size()), "\n");
}

std::string without_thought_channels(std::string_view answer) {
  constexpr std::string_view kChannel = "<|channel>";
  constexpr std::string_view kChannelEnd = "<channel|>";
  std::string kept;
  while (!answer.empty()) {
    const auto end = answer.find(kChannelEnd);
    const auto part = answer.substr(0, end);
    kept += part.substr(0, part.find(kChannel));
    if (end == std::string_view::npos) break;
    answer.remove_prefix(end + kChannelEnd.size());
  }
  return kept;
}

}  // namespace quench
