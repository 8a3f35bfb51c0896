#pragma once

#include <span>
#include <vector>

#include "base/token.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace quench {

/// The tokens that a model sees of these messages, its answer's turn opened. BOS comes first where the vocabulary's policy wants it, once.
/// Throws as ChatTemplate::render does.
[[nodiscard]] std::vector<Token> chat_prompt(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                             std::span<const ChatMessage> messages, Thinking thinking);

}  // namespace quench
