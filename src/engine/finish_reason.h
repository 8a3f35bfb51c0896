#pragma once

#include <string_view>

namespace quench {

enum class FinishReason {
  kEndToken,     ///< the model ended its turn, or a stop id came
  kStopText,     ///< a stop text matched; it is not part of the answer
  kLength,       ///< max_new_tokens
  kContextFull,  ///< the context has no room for another token
  kDeadline,     ///< its time was over
  kCancelled
};

/// "stop", "stop text", "length", "context full", "deadline", "cancelled"
[[nodiscard]] std::string_view finish_name(FinishReason reason) noexcept;

}  // namespace quench
