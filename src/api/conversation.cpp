#include "engine/conversation.h"

#include <atomic>
#include <utility>

#include "api/state.h"

namespace quench::api {

struct Conversation::State {
  std::shared_ptr<Engine::State> engine;
  quench::Conversation conversation;
  std::atomic<bool> cancelled{false};
  std::atomic<bool> in_turn{false};

  /// Runs what changes the conversation, unless something does already.
  template <typename Change>
  auto alone(const Change& change) {
    return translating([&] {
      if (in_turn.exchange(true)) throw_bad_request("a turn of this conversation is under way: it cannot be changed before the end of it");
      struct Ending {
        std::atomic<bool>& flag;
        ~Ending() { flag.store(false); }
      } const ending{in_turn};
      return change();
    });
  }

  /// Hooks that hand text and progress to the caller's functions, which may cancel.
  template <typename Turn>
  Answer take_turn(const OnText& on_text, const OnPrompt& on_prompt, const Turn& turn) {
    return alone([&] {
      cancelled.store(false);
      GenerationHooks hooks;
      hooks.cancel = &cancelled;
      if (on_text) {
        hooks.on_text = [&](std::string_view text) {
          if (!cancelled.load() && !on_text(text)) cancelled.store(true);
        };
      }
      if (on_prompt) {
        hooks.on_prefill = [&](std::size_t done, std::size_t total) {
          if (!cancelled.load() && !on_prompt(done, total)) cancelled.store(true);
        };
      }
      return to_answer(turn(hooks), *engine->model.state_->tokenizer);
    });
  }
};

namespace {

ConversationOptions checked(ConversationOptions options) {
  if (options.max_tokens == 0) throw_bad_request("ConversationOptions::max_tokens: answers of 0 tokens say nothing");
  check_timeout(options.timeout_seconds);
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
            to_settings(options.sampling, sampling_defaults(engine.state_->model.architecture(), chat_template.thinks(made.thinking)),
                        *model.dry_breakers);
        made.stop_texts = options.stop;
        made.max_new_tokens = options.max_tokens;
        made.deadline_seconds = options.timeout_seconds;
        made.speculate = options.speculate;
        return std::unique_ptr<State>(new State{
            .engine = engine.state_, .conversation = {engine.state_->generator, *model.tokenizer, chat_template, std::move(made)}});
      })) {}
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;
Conversation::~Conversation() = default;

Answer Conversation::send(const std::string& message, const OnText& on_text, const OnPrompt& on_prompt) {
  return state_->take_turn(on_text, on_prompt, [&](const GenerationHooks& hooks) { return state_->conversation.send(message, hooks); });
}

Answer Conversation::regenerate(const OnText& on_text, const OnPrompt& on_prompt) {
  return state_->take_turn(on_text, on_prompt, [&](const GenerationHooks& hooks) { return state_->conversation.regenerate(hooks); });
}

void Conversation::cancel() noexcept { state_->cancelled.store(true); }

std::optional<std::string> Conversation::undo() {
  return state_->alone([&] { return state_->conversation.undo(); });
}
void Conversation::reset() {
  state_->alone([&] { state_->conversation.reset(); });
}
std::uint64_t Conversation::seed() const noexcept { return state_->conversation.seed(); }
std::string Conversation::to_json() const {
  return translating([&] { return state_->conversation.to_json(); });
}
void Conversation::from_json(std::string_view json) {
  state_->alone([&] { state_->conversation.from_json(json); });
}

std::vector<Message> Conversation::messages() const {
  std::vector<Message> result;
  for (const ChatMessage& message : state_->conversation.messages()) {
    result.push_back({to_role(message.role), message.content});
  }
  return result;
}

}  // namespace quench::api
