#include "engine/generation.h"

#include <memory>
#include <utility>

#include "engine/answer_record.h"

namespace quench {

struct Generation::State {
  State(const Tokenizer& tokenizer, const GenerationOptions& options, GenerationHooks generation_hooks)
      : hooks(std::move(generation_hooks)), record(tokenizer, options) {}

  GenerationHooks hooks;
  AnswerRecord record;
  AnswerReport report;
  std::optional<Sampler> sampler;
  bool done = false;

  void say(const std::string& piece) const {
    if (!piece.empty() && hooks.on_text) hooks.on_text(piece);
  }
};

class Generation::Listener final : public RequestListener {
 public:
  explicit Listener(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void on_prefill(std::size_t done, std::size_t total) override {
    if (state_->hooks.on_prefill) state_->hooks.on_prefill(done, total);
  }
  bool on_token(std::size_t, Token token, std::span<const float> logits) override {
    if (state_->hooks.on_token) state_->hooks.on_token(token);
    state_->say(state_->record.push(token, logits));
    return !state_->record.stopped();
  }
  void on_end(std::size_t, const AnswerReport& report, Sampler& sampler) noexcept override {
    state_->report = report;
    state_->sampler = std::move(sampler);
    state_->done = true;
  }

 private:
  std::shared_ptr<State> state_;
};

Generation::~Generation() {
  if (state_) state_->hooks = {};
}

bool Generation::done() const noexcept { return state_->done; }

GenerationResult Generation::take() {
  state_->say(state_->record.finish(state_->report));
  return state_->record.take();
}

Sampler Generation::take_sampler() { return std::move(*state_->sampler); }

Generation start_generation(BatchEngine& engine, const Tokenizer& tokenizer, Sampler sampler, std::vector<Token> prompt,
                            const GenerationOptions& options, GenerationHooks hooks) {
  EngineRequest request = engine_request(std::move(prompt), options, engine.context());
  request.samplers.push_back(std::move(sampler));
  Generation generation(std::make_shared<Generation::State>(tokenizer, options, std::move(hooks)));
  request.listener = std::make_unique<Generation::Listener>(generation.state_);
  generation.id_ = engine.submit(std::move(request));
  return generation;
}

GenerationResult generate(BatchEngine& engine, const Tokenizer& tokenizer, Sampler& sampler, std::span<const Token> prompt,
                          const GenerationOptions& options, const GenerationHooks& hooks) {
  Generation generation =
      start_generation(engine, tokenizer, std::move(sampler), std::vector<Token>(prompt.begin(), prompt.end()), options, hooks);
  try {
    while (!generation.done()) {
      if (hooks.cancel != nullptr && hooks.cancel->load(std::memory_order_relaxed)) engine.cancel(generation.id());
      engine.step();
    }
  } catch (...) {
    engine.cancel(generation.id());
    throw;
  }
  sampler = generation.take_sampler();
  return generation.take();
}

}  // namespace quench
