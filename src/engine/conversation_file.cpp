#include "engine/conversation_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace quench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

ChatMessage read_message(const Json& entry, std::size_t number) {
  const auto text_at = [&](const char* key) -> const std::string& {
    const auto found = entry.is_object() ? entry.find(key) : entry.end();
    if (!entry.is_object() || found == entry.end() || !found->is_string()) {
      throw_bad_file(fmt::format("conversation: message {} has no text under \"{}\"", number, key));
    }
    return found->get_ref<const std::string&>();
  };
  const auto& role_text = text_at("role");
  const auto role = role_from_name(role_text);
  if (!role) throw_bad_file(fmt::format("conversation: message {} has the unknown role \"{}\"", number, role_text));
  return {*role, text_at("content")};
}

void check_turns(const std::vector<ChatMessage>& messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto wanted = i % 2 == 0 ? Role::kUser : Role::kAssistant;
    if (messages[i].role != wanted) {
      throw_bad_file(fmt::format("conversation: user and assistant do not alternate; turn message {} is the {}'s", i + 1,
                                 role_name(messages[i].role)));
    }
  }
  if (messages.size() % 2 != 0) throw_bad_file("conversation: the last message has no answer");
}

}  // namespace

std::string write_conversation(std::string_view system, std::span<const ChatMessage> messages) {
  Json list = Json::array();
  const auto add = [&](Role role, std::string_view content) { list.push_back({{"role", role_name(role)}, {"content", content}}); };
  if (!system.empty()) add(Role::kSystem, system);
  for (const auto& message : messages) add(message.role, message.content);
  const Json document{{"version", kVersion}, {"messages", std::move(list)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

SavedConversation read_conversation(std::string_view text) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) throw_bad_file("conversation: this is no JSON");
  if (!document.is_object() || !document.contains("version") || document["version"] != kVersion) {
    throw_bad_file(fmt::format("conversation: \"version\" must be {}", kVersion));
  }
  if (!document.contains("messages") || !document["messages"].is_array()) throw_bad_file("conversation: there is no array \"messages\"");
  SavedConversation saved;
  std::size_t number = 0;
  for (const auto& entry : document["messages"]) {
    ++number;
    auto message = read_message(entry, number);
    if (message.role == Role::kSystem && number == 1) {
      saved.system = std::move(message.content);
    } else {
      saved.messages.push_back(std::move(message));
    }
  }
  check_turns(saved.messages);
  return saved;
}

}  // namespace quench
