#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"

namespace quench {

/// A saved conversation: {"version": 1, "messages": [{"role": "system" | "user" | "assistant", "content": "..."}]}. It knows nothing of
/// the model. Bytes that are no UTF-8 are saved as U+FFFD.
struct SavedConversation {
  std::string system;
  std::vector<ChatMessage> messages;  ///< user and assistant in turn, ending with the assistant
};

[[nodiscard]] std::string write_conversation(std::string_view system, std::span<const ChatMessage> messages);
/// Throws Error(kBadFile) that says what is wrong and in which message.
[[nodiscard]] SavedConversation read_conversation(std::string_view text);

}  // namespace quench
