#include "text/chat_template.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "gguf/metadata.h"
#include "text/reasoning.h"

namespace quench {
namespace {

constexpr std::array<std::string_view, 4> kNames{"chatml", "llama3", "gemma", "gemma4"};

/// Collects pieces; neighbours of the same kind become one.
class Prompt {
 public:
  void literal(std::string_view text) { add(text, Specials::kRecognise); }
  void content(std::string_view text) { add(text, Specials::kAsText); }
  [[nodiscard]] std::vector<RenderedPiece> take() { return std::move(pieces_); }

 private:
  void add(std::string_view text, Specials specials) {
    if (text.empty()) return;
    if (pieces_.empty() || pieces_.back().specials != specials) pieces_.push_back({{}, specials});
    pieces_.back().text += text;
  }

  std::vector<RenderedPiece> pieces_;
};

/// Python's str.strip over ASCII white space, as the templates' `trim`.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

void check_messages(std::span<const ChatMessage> messages, const RenderOptions& options) {
  if (messages.empty()) throw_bad_request("chat: there are no messages");
  if (options.open_assistant_turn && messages.back().role == Role::kAssistant) {
    throw_bad_request("chat: the last message is the assistant's; it has nothing to answer");
  }
}

/// Source: the templates of Qwen3, Qwen2.5 and SmolLM2, without the system message that the latter two add on their own.
class ChatMl : public ChatTemplate {
 public:
  explicit ChatMl(bool has_switch) : has_switch_(has_switch) {}

  [[nodiscard]] std::vector<RenderedPiece> render(std::span<const ChatMessage> messages, const RenderOptions& options) const override {
    check_messages(messages, options);
    Prompt prompt;
    for (const auto& message : messages) {
      prompt.literal("<|im_start|>");
      prompt.literal(role_name(message.role));
      prompt.literal("\n");
      prompt.content(message.role == Role::kAssistant ? without_reasoning(message.content) : message.content);
      prompt.literal("<|im_end|>\n");
    }
    if (options.open_assistant_turn) {
      prompt.literal("<|im_start|>assistant\n");
      if (has_switch_ && options.thinking == Thinking::kOff) prompt.literal("<think>\n\n</think>\n\n");
    }
    return prompt.take();
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "chatml"; }
  [[nodiscard]] bool thinks(Thinking thinking) const noexcept override { return has_switch_ && thinking != Thinking::kOff; }

 private:
  bool has_switch_;  ///< the model knows how to answer with and without reasoning
};

/// Source: the templates of Llama 3 to 3.3, without the dates that 3.1 and later put into a system message of their own.
class Llama3 : public ChatTemplate {
 public:
  [[nodiscard]] std::vector<RenderedPiece> render(std::span<const ChatMessage> messages, const RenderOptions& options) const override {
    check_messages(messages, options);
    Prompt prompt;
    prompt.literal(options.bos_text);
    for (const auto& message : messages) {
      open(prompt, message.role);
      prompt.content(trimmed(message.role == Role::kAssistant ? without_leading_reasoning(message.content) : message.content));
      prompt.literal("<|eot_id|>");
    }
    if (options.open_assistant_turn) open(prompt, Role::kAssistant);
    return prompt.take();
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "llama3"; }
  [[nodiscard]] bool thinks(Thinking) const noexcept override { return false; }

 private:
  static void open(Prompt& prompt, Role role) {
    prompt.literal("<|start_header_id|>");
    prompt.literal(role_name(role));
    prompt.literal("<|end_header_id|>\n\n");
  }
};

/// Source: the templates of Gemma 2 and 3. There is no system role: its text opens the first user turn, as Gemma 3 does it.
class Gemma : public ChatTemplate {
 public:
  [[nodiscard]] std::vector<RenderedPiece> render(std::span<const ChatMessage> messages, const RenderOptions& options) const override {
    check_messages(messages, options);
    std::string_view system;
    if (messages.front().role == Role::kSystem) {
      system = messages.front().content;
      messages = messages.subspan(1);
    }
    check_order(messages);
    Prompt prompt;
    prompt.literal(options.bos_text);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const bool model = messages[i].role == Role::kAssistant;
      prompt.literal(model ? "<start_of_turn>model\n" : "<start_of_turn>user\n");
      if (i == 0 && !system.empty()) {
        prompt.content(system);
        prompt.literal("\n\n");
      }
      prompt.content(trimmed(model ? without_leading_reasoning(messages[i].content) : messages[i].content));
      prompt.literal("<end_of_turn>\n");
    }
    if (options.open_assistant_turn) prompt.literal("<start_of_turn>model\n");
    return prompt.take();
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "gemma"; }
  [[nodiscard]] bool thinks(Thinking) const noexcept override { return false; }

 private:
  static void check_order(std::span<const ChatMessage> messages) {
    if (messages.empty()) throw_bad_request("chat: Gemma needs a user message to put the system message into");
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].role == Role::kSystem) {
        throw_bad_request(fmt::format("chat: message {} is a system message; Gemma takes one at the start only", i + 1));
      }
      if ((messages[i].role == Role::kUser) != (i % 2 == 0)) {
        throw_bad_request("chat: Gemma's messages must alternate between user and assistant, the user first");
      }
    }
  }
};

/// Source: the template of Gemma 4. Reasoning is off unless asked for; off is told by an empty thought channel.
class Gemma4 : public ChatTemplate {
 public:
  [[nodiscard]] std::vector<RenderedPiece> render(std::span<const ChatMessage> messages, const RenderOptions& options) const override {
    check_messages(messages, options);
    const bool think = thinks(options.thinking);
    Prompt prompt;
    prompt.literal(options.bos_text);
    const bool system = messages.front().role == Role::kSystem;
    if (think || system) {
      prompt.literal(think ? "<|turn>system\n<|think|>\n" : "<|turn>system\n");
      if (system) prompt.content(trimmed(messages.front().content));
      prompt.literal("<turn|>\n");
    }
    if (system) messages = messages.subspan(1);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const bool model = messages[i].role == Role::kAssistant;
      const bool continues = model && i > 0 && messages[i - 1].role == Role::kAssistant;
      if (!continues) {
        prompt.literal("<|turn>");
        prompt.literal(model ? "model" : role_name(messages[i].role));
        prompt.literal("\n");
      }
      prompt.content(trimmed(model ? without_thought_channels(messages[i].content) : messages[i].content));
      prompt.literal("<turn|>\n");
    }
    if (options.open_assistant_turn) prompt.literal(think ? "<|turn>model\n" : "<|turn>model\n<|channel>thought\n<channel|>");
    return prompt.take();
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "gemma4"; }
  [[nodiscard]] bool thinks(Thinking thinking) const noexcept override { return thinking == Thinking::kOn; }
};

bool has(std::string_view source, std::string_view marker) { return source.find(marker) != std::string_view::npos; }

}  // namespace

std::string_view role_name(Role role) noexcept {
  switch (role) {
    case Role::kSystem: return "system";
    case Role::kUser: return "user";
    case Role::kAssistant: return "assistant";
  }
  return "?";
}

std::optional<Role> role_from_name(std::string_view name) noexcept {
  for (const auto role : {Role::kSystem, Role::kUser, Role::kAssistant}) {
    if (role_name(role) == name) return role;
  }
  return std::nullopt;
}

std::vector<TextSpan> as_spans(std::span<const RenderedPiece> pieces) {
  std::vector<TextSpan> spans;
  spans.reserve(pieces.size());
  for (const auto& piece : pieces) spans.push_back({piece.text, piece.specials});
  return spans;
}

std::span<const std::string_view> chat_template_names() noexcept { return kNames; }

std::unique_ptr<ChatTemplate> chat_template_by_name(std::string_view name) {
  if (name == "chatml") return std::make_unique<ChatMl>(true);
  if (name == "llama3") return std::make_unique<Llama3>();
  if (name == "gemma") return std::make_unique<Gemma>();
  if (name == "gemma4") return std::make_unique<Gemma4>();
  std::string names;
  for (const auto known : kNames) names += fmt::format("{}{}", names.empty() ? "" : ", ", known);
  throw_bad_request(fmt::format("chat template: there is no '{}'; there are {}", name, names));
}

std::unique_ptr<ChatTemplate> detect_chat_template(std::string_view source) {
  if (has(source, "<|im_start|>")) return std::make_unique<ChatMl>(has(source, "enable_thinking"));
  if (has(source, "<|start_header_id|>")) return std::make_unique<Llama3>();
  if (has(source, "<|turn>")) return std::make_unique<Gemma4>();
  if (has(source, "<start_of_turn>")) return std::make_unique<Gemma>();
  return nullptr;
}

std::unique_ptr<ChatTemplate> chat_template_from(const gguf::Metadata& metadata) {
  const auto* source = metadata.string_at("tokenizer.chat_template");
  return source == nullptr ? nullptr : detect_chat_template(*source);
}

}  // namespace quench
