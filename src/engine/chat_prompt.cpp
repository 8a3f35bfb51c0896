#include "engine/chat_prompt.h"

namespace quench {

std::vector<Token> chat_prompt(const Tokenizer& tokenizer, const ChatTemplate& chat_template, std::span<const ChatMessage> messages,
                               Thinking thinking) {
  RenderOptions options{.thinking = thinking};
  const auto bos = tokenizer.bos();
  if (bos) options.bos_text = tokenizer.token_text(*bos);
  const auto pieces = chat_template.render(messages, options);
  auto tokens = tokenizer.encode_spans(as_spans(pieces));
  // A template without BOS for a model that wants one: the tokenizer's policy adds it.
  if (bos && tokenizer.adds_bos() && (tokens.empty() || tokens.front() != *bos)) tokens.insert(tokens.begin(), *bos);
  return tokens;
}

}  // namespace quench
