#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace quench {

namespace gguf {
class Metadata;
}

enum class Role { kSystem, kUser, kAssistant };

/// system, user, assistant
[[nodiscard]] std::string_view role_name(Role role) noexcept;
/// Nothing for another name.
[[nodiscard]] std::optional<Role> role_from_name(std::string_view name) noexcept;

struct ChatMessage {
  Role role;
  std::string content;

  bool operator==(const ChatMessage&) const = default;
};

/// Whether the model shall reason before it answers.
enum class Thinking {
  kDefault,  ///< as the model's own template does without being told
  kOn,
  kOff
};

struct RenderOptions {
  Thinking thinking = Thinking::kDefault;
  std::string bos_text{};           ///< the vocabulary's BOS as text; empty: the model has none
  bool open_assistant_turn = true;  ///< end with the assistant's opener, so that the model answers
};

/// Part of a prompt. Literals of the template name special tokens; what people wrote never does.
struct RenderedPiece {
  std::string text;
  Specials specials;

  bool operator==(const RenderedPiece&) const = default;
};

/// Views of `pieces` for Tokenizer::encode_spans.
[[nodiscard]] std::vector<TextSpan> as_spans(std::span<const RenderedPiece> pieces);

/// Turns messages into the prompt that a model was trained on. Immutable.
///
/// Reasoning in earlier answers (`<think>...</think>` and what the family uses instead) is left out of the prompt.
class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;

  /// Throws Error(kBadRequest) for messages that the template cannot express: none at all; the last one from the assistant although
  /// its turn shall be opened; for Gemma 1-3 a system message after the first, or roles that do not alternate.
  [[nodiscard]] virtual std::vector<RenderedPiece> render(std::span<const ChatMessage> messages, const RenderOptions& options) const = 0;

  /// chatml, llama3, gemma, gemma4
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Whether an answer under this setting starts with reasoning.
  [[nodiscard]] virtual bool thinks(Thinking thinking) const noexcept = 0;
};

/// A built-in template by name. Throws Error(kBadRequest) listing the names.
[[nodiscard]] std::unique_ptr<ChatTemplate> chat_template_by_name(std::string_view name);
/// chatml, llama3, gemma, gemma4
[[nodiscard]] std::span<const std::string_view> chat_template_names() noexcept;

/// The built-in template that the markers in a Jinja source call for, or null. `source` may be any bytes.
[[nodiscard]] std::unique_ptr<ChatTemplate> detect_chat_template(std::string_view source);
/// From tokenizer.chat_template; null when the file has none or no built-in fits it.
[[nodiscard]] std::unique_ptr<ChatTemplate> chat_template_from(const gguf::Metadata& metadata);

}  // namespace quench
