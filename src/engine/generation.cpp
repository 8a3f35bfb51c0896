#include "engine/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "engine/answer_text.h"

namespace quench {

struct Generation::State {
  State(const Tokenizer& tokenizer, GenerationOptions generation_options, GenerationHooks generation_hooks)
      : options(std::move(generation_options)),
        hooks(std::move(generation_hooks)),
        text(tokenizer, options.stop_texts, options.with_specials) {}

  GenerationOptions options;
  GenerationHooks hooks;
  AnswerText text;
  GenerationResult result;
  AnswerReport report;
  std::optional<Sampler> sampler;
  bool done = false;

  void say(const std::string& piece) {
    if (piece.empty()) return;
    result.text += piece;
    if (hooks.on_text) hooks.on_text(piece);
  }
  [[nodiscard]] FinishReason finish() const;
};

FinishReason Generation::State::finish() const {
  if (text.matched_stop()) return FinishReason::kStopText;
  switch (report.end) {
    case AnswerEnd::kStopId: return FinishReason::kEndToken;
    case AnswerEnd::kLength: return result.tokens.size() == options.max_new_tokens ? FinishReason::kLength : FinishReason::kContextFull;
    case AnswerEnd::kListener:
    case AnswerEnd::kCancelled:
    case AnswerEnd::kDeadline:
    case AnswerEnd::kFailed: break;
  }
  return FinishReason::kCancelled;
}

class Generation::Listener final : public RequestListener {
 public:
  explicit Listener(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void on_prefill(std::size_t done, std::size_t total) override {
    if (state_->hooks.on_prefill) state_->hooks.on_prefill(done, total);
  }
  bool on_token(std::size_t, Token token, std::span<const float>) override {
    state_->result.tokens.push_back(token);
    if (state_->hooks.on_token) state_->hooks.on_token(token);
    state_->say(state_->text.push(token));
    return !state_->text.matched_stop();
  }
  void on_end(std::size_t, const AnswerReport& report, Sampler& sampler) noexcept override {
    state_->report = report;
    state_->sampler = std::move(sampler);
    state_->done = true;
  }

 private:
  std::shared_ptr<State> state_;
};

namespace {

double rate(std::size_t tokens, double seconds) { return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0; }

}  // namespace

double GenerationStats::prefill_tokens_per_second() const noexcept { return rate(prompt_tokens - cached_tokens, prefill_seconds); }
double GenerationStats::decode_tokens_per_second() const noexcept { return rate(generated_tokens, decode_seconds); }

Generation::~Generation() {
  if (state_) state_->hooks = {};
}

bool Generation::done() const noexcept { return state_->done; }

GenerationResult Generation::take() {
  State& state = *state_;
  const AnswerReport& report = state.report;
  if (report.error) std::rethrow_exception(report.error);
  state.say(state.text.finish());
  GenerationResult& result = state.result;
  result.finish = state.finish();
  result.end_token = report.stop_id;
  result.stop_text = state.text.matched_stop();
  const bool spoke = report.first_token > 0.0;
  result.stats = {.prompt_tokens = report.prompt_tokens,
                  .cached_tokens = report.cached_tokens,
                  .generated_tokens = report.generated_tokens,
                  .drafted_tokens = report.drafted_tokens,
                  .accepted_tokens = report.accepted_tokens,
                  .prefill_seconds = spoke ? report.first_token - report.admitted : 0.0,
                  .decode_seconds = spoke ? report.ended - report.first_token : 0.0};
  return std::move(result);
}

Sampler Generation::take_sampler() { return std::move(*state_->sampler); }

Generation start_generation(BatchEngine& engine, const Tokenizer& tokenizer, Sampler sampler, std::vector<Token> prompt,
                            GenerationOptions options, GenerationHooks hooks) {
  const std::size_t context = engine.context();
  if (prompt.size() >= context) {
    throw_bad_request(fmt::format("the prompt has {} tokens and the context {}: no room is left for an answer", prompt.size(), context));
  }
  EngineRequest request;
  request.max_new_tokens = options.must_fit ? options.max_new_tokens : std::min(options.max_new_tokens, context - prompt.size());
  request.prompt = std::move(prompt);
  request.stop_ids = options.stop_ids;
  request.speculate = options.speculate;
  request.references = options.references;
  request.samplers.push_back(std::move(sampler));
  Generation generation(std::make_shared<Generation::State>(tokenizer, std::move(options), std::move(hooks)));
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
