// Any bytes as a chat template, any bytes as messages: detection answers, and rendering gives a prompt in which no content has become
// part of a literal, or Error(kBadRequest).
// usage: template_fuzz NEW_CORPUS tests/corpus/templates      (scripts/template_corpus.py describes the format)

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gguf/metadata.h"
#include "text/chat_template.h"

namespace {

using namespace quench;

[[noreturn]] void defect(const char* what) {
  (void)std::fprintf(stderr, "%s\n", what);
  std::abort();
}

std::vector<std::string_view> fields(std::string_view input) {
  std::vector<std::string_view> result;
  while (true) {
    const auto end = input.find('\x1f');
    result.push_back(input.substr(0, end));
    if (end == std::string_view::npos) return result;
    input.remove_prefix(end + 1);
  }
}

Role role_of(char letter) { return letter == 's' ? Role::kSystem : letter == 'a' ? Role::kAssistant : Role::kUser; }
Thinking thinking_of(char letter) { return letter == 'y' ? Thinking::kOn : letter == 'n' ? Thinking::kOff : Thinking::kDefault; }

/// The template's own part of the prompt, or nothing when it refuses the messages.
std::string literals(const ChatTemplate& chat_template, const std::vector<ChatMessage>& messages, const RenderOptions& options) {
  std::string result;
  try {
    const auto pieces = chat_template.render(messages, options);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].text.empty()) defect("an empty piece");
      if (i > 0 && pieces[i].specials == pieces[i - 1].specials) defect("two pieces of a kind in a row");
      if (pieces[i].specials == Specials::kRecognise) result += pieces[i].text;
    }
    const auto spans = as_spans(pieces);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (spans[i].text != pieces[i].text || spans[i].specials != pieces[i].specials) defect("a span is not its piece");
    }
    if (chat_template.thinks(options.thinking) && options.thinking == Thinking::kOff) defect("it thinks although it must not");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadRequest) defect(error.what());
  }
  return result;
}

void check_template(const ChatTemplate& chat_template, const std::vector<ChatMessage>& messages, Thinking thinking) {
  auto harmless = messages;
  for (auto& message : harmless) message.content = message.content.empty() ? "" : "x";
  for (const bool open : {true, false}) {
    const RenderOptions options{.thinking = thinking, .bos_text = "<bos>", .open_assistant_turn = open};
    if (literals(chat_template, messages, options) != literals(chat_template, harmless, options)) {
      defect("a content changed the template's own part");
    }
  }
}

/// Any text as the name of a template or a role: known, or refused.
void check_names(std::string_view name, const std::vector<ChatMessage>& messages) {
  const auto names = chat_template_names();
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  try {
    if (chat_template_by_name(name)->name() != name || !known) defect("a name that is not listed");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadRequest || known) defect(error.what());
  }
  const auto role = role_from_name(name);
  if (role && role_name(*role) != name) defect("a role's name is another one's");
  for (const ChatMessage& message : messages) {
    if (role_from_name(role_name(message.role)) != message.role) defect("a role has no name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fields({reinterpret_cast<const char*>(data), size});
  const auto thinking = thinking_of(parts.size() > 1 && !parts[1].empty() ? parts[1].front() : 'd');
  std::vector<ChatMessage> messages;
  for (std::size_t i = 2; i < parts.size(); ++i) {
    const char letter = parts[i].empty() ? 'u' : parts[i].front();
    messages.push_back({role_of(letter), std::string(parts[i].substr(parts[i].empty() ? 0 : 1))});
  }
  check_names(parts.front(), messages);
  gguf::Metadata metadata;
  metadata.add("tokenizer.chat_template", std::string(parts.front()));
  const auto detected = chat_template_from(metadata);
  if (detected) {
    check_template(*detected, messages, thinking);
    if (chat_template_by_name(detected->name())->name() != detected->name()) defect("a template has no name to call it by");
  }
  for (const auto name : chat_template_names()) check_template(*chat_template_by_name(name), messages, thinking);
  return 0;
}
