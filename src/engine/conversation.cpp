#include "engine/conversation.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/chat_prompt.h"
#include "engine/conversation_file.h"

namespace quench {
namespace {

void add(GenerationStats& total, const GenerationStats& turn) {
  total.prompt_tokens += turn.prompt_tokens;
  total.cached_tokens += turn.cached_tokens;
  total.generated_tokens += turn.generated_tokens;
  total.drafted_tokens += turn.drafted_tokens;
  total.accepted_tokens += turn.accepted_tokens;
  total.prefill_seconds += turn.prefill_seconds;
  total.decode_seconds += turn.decode_seconds;
}

}  // namespace

Conversation::Conversation(Generator& generator, const Tokenizer& tokenizer, const ChatTemplate& chat_template, ConversationOptions options)
    : generator_(generator),
      tokenizer_(tokenizer),
      template_(chat_template),
      options_(std::move(options)),
      sampler_(options_.sampler, generator.vocab_size()) {
  const auto& ends = tokenizer.end_tokens();
  generation_.stop_ids = options_.stop_ids;
  generation_.stop_ids.insert(generation_.stop_ids.end(), ends.begin(), ends.end());
  generation_.stop_texts = options_.stop_texts;
  generation_.max_new_tokens = options_.max_new_tokens;
  generation_.deadline_seconds = options_.deadline_seconds;
  generation_.speculate = options_.speculate;
  generation_.references = options_.references;
}

GenerationResult Conversation::send(std::string message, const GenerationHooks& hooks) {
  auto messages = messages_;
  messages.push_back({Role::kUser, std::move(message)});
  return take_turn(std::move(messages), hooks);
}

GenerationResult Conversation::regenerate(const GenerationHooks& hooks) {
  if (messages_.empty()) throw_bad_request("regenerate: there is no answer yet");
  auto messages = messages_;
  messages.pop_back();
  return take_turn(std::move(messages), hooks);
}

GenerationResult Conversation::take_turn(std::vector<ChatMessage> messages, const GenerationHooks& hooks) {
  const auto prompt = render(messages);
  Sampler before = sampler_.clone();
  GenerationResult result;
  try {
    result = generator_.generate(tokenizer_, sampler_, prompt, generation_, hooks);
    messages.push_back({Role::kAssistant, result.text});
  } catch (...) {
    sampler_ = std::move(before);
    throw;
  }
  if (result.finish == FinishReason::kCancelled) {
    sampler_ = std::move(before);
    return result;
  }
  messages_ = std::move(messages);
  stats_.turns += 1;
  stats_.last = result.stats;
  add(stats_.total, result.stats);
  stats_.context_used = result.stats.prompt_tokens + result.stats.generated_tokens;
  return result;
}

std::optional<std::string> Conversation::undo() {
  if (messages_.empty()) return std::nullopt;
  messages_.pop_back();
  std::string message = std::move(messages_.back().content);
  messages_.pop_back();
  return message;
}

void Conversation::reset() {
  messages_.clear();
  stats_ = {};
}

void Conversation::set_sampler(SamplerSettings settings) {
  sampler_ = sampler_.with_settings(settings);
  options_.sampler = std::move(settings);
}

ConversationStats Conversation::stats() const {
  auto stats = stats_;
  stats.context = generator_.context();
  return stats;
}

std::vector<Token> Conversation::render(std::span<const ChatMessage> messages) const {
  std::vector<ChatMessage> all;
  if (!options_.system.empty()) all.push_back({Role::kSystem, options_.system});
  all.insert(all.end(), messages.begin(), messages.end());
  return chat_prompt(tokenizer_, template_, all, options_.thinking);
}

std::string Conversation::to_json() const { return write_conversation(options_.system, messages_); }

void Conversation::from_json(std::string_view text) {
  auto saved = read_conversation(text);
  options_.system = std::move(saved.system);
  messages_ = std::move(saved.messages);
}

}  // namespace quench
