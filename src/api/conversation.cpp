#include "engine/conversation.h"

#include <atomic>
#include <utility>

#include "api/state.h"

namespace quench::api {

struct Conversation::State {
  std::shared_ptr<Engine::State> engine;
  quench::Conversation conversation;
  std::atomic<bool> cancelled{false};

  /// Hooks that hand text to the caller's function, which may cancel.
  template <typename Turn>
  Answer take_turn(const OnText& on_text, const Turn& turn) {
    cancelled.store(false);
    GenerationHooks hooks;
    hooks.cancel = &cancelled;
    if (on_text) {
      hooks.on_text = [&](std::string_view text) {
        if (!cancelled.load() && !on_text(text)) cancelled.store(true);
      };
    }
    return translating([&] { return to_answer(turn(hooks), *engine->model.state_->tokenizer); });
  }
};

namespace {

ConversationOptions checked(ConversationOptions options) {
  if (options.max_tokens == 0) throw_bad_request("ConversationOptions::max_tokens: answers of 0 tokens say nothing");
  return options;
}

}  // namespace

Conversation::Conversation(const Engine& engine, const ConversationOptions& given)
    : state_(translating([&] {
        const ConversationOptions options = checked(given);
        const Model::State& model = *engine.state_->model.state_;
        const ChatTemplate& chat_template = model.needed_template();
        quench::ConversationOptions made;
        made.system = options.system;
        made.thinking = to_thinking(options.thinking);
        made.sampler =
            to_settings(options.sampling, sampling_defaults(engine.state_->model.architecture(), chat_template.thinks(made.thinking)));
        made.stop_texts = options.stop;
        made.max_new_tokens = options.max_tokens;
        made.speculate = options.speculate;
        return std::unique_ptr<State>(new State{
            .engine = engine.state_, .conversation = {engine.state_->generator, *model.tokenizer, chat_template, std::move(made)}});
      })) {}
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;
Conversation::~Conversation() = default;

Answer Conversation::send(const std::string& message, const OnText& on_text) {
  return state_->take_turn(on_text, [&](const GenerationHooks& hooks) { return state_->conversation.send(message, hooks); });
}

Answer Conversation::regenerate(const OnText& on_text) {
  return state_->take_turn(on_text, [&](const GenerationHooks& hooks) { return state_->conversation.regenerate(hooks); });
}

void Conversation::cancel() noexcept { state_->cancelled.store(true); }

std::optional<std::string> Conversation::undo() { return state_->conversation.undo(); }
void Conversation::reset() { state_->conversation.reset(); }
std::uint64_t Conversation::seed() const noexcept { return state_->conversation.seed(); }
std::string Conversation::to_json() const {
  return translating([&] { return state_->conversation.to_json(); });
}
void Conversation::from_json(std::string_view json) {
  translating([&] { state_->conversation.from_json(json); });
}

std::vector<Message> Conversation::messages() const {
  std::vector<Message> result;
  for (const ChatMessage& message : state_->conversation.messages()) {
    const Role role = message.role == quench::Role::kSystem ? Role::kSystem
                      : message.role == quench::Role::kUser ? Role::kUser
                                                            : Role::kAssistant;
    result.push_back({role, message.content});
  }
  return result;
}

}  // namespace quench::api
