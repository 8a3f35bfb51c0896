#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "api/state.h"
#include "base/memory.h"
#include "engine/answer_stream.h"
#include "engine/chat_prompt.h"
#include "engine/context_plan.h"
#include "engine/embedding.h"
#include "engine/file_hash.h"
#include "engine/score.h"
#include "kernels/compute.h"

namespace quench::api {
namespace {

constexpr std::uint64_t kLeastSavedBytes = std::uint64_t{1} << 20;

quench::CacheType to_cache_type(CacheType type) {
  switch (type) {
    case CacheType::kF16: return quench::CacheType::kF16;
    case CacheType::kQ8_0: return quench::CacheType::kQ8_0;
  }
  throw_bad_request("EngineOptions::cache_type is none of CacheType");
}

KvCache::Options cache_options(const Model& model, const KvLayout& layout, const EngineOptions& options, std::size_t chunk) {
  std::optional<std::size_t> requested;
  if (options.context > 0) requested = options.context;
  const ContextPlan plan = plan_context(layout, model.trained_context(), available_memory_bytes(), chunk, requested, options.cache_bytes);
  return {.budget_bytes = plan.budget_bytes, .context = plan.context};
}

BatchEngineOptions engine_options(const EngineOptions& options) {
  BatchEngineOptions result;
  result.planner.chunk = options.chunk;
  result.max_running = options.max_running;
  result.max_waiting = options.max_waiting;
  return result;
}

void check_numbers(const EngineOptions& options) {
  check_threads(options.threads);
  const auto refuse_zero = [](std::size_t value, const char* name) {
    if (value == 0) throw_bad_request(std::string("EngineOptions::") + name + " is 0: nothing could be computed");
  };
  refuse_zero(options.chunk, "chunk");
  refuse_zero(options.max_running, "max_running");
  refuse_zero(options.max_waiting, "max_waiting");
  if (!options.saved_cache.empty() && options.saved_cache_bytes < kLeastSavedBytes) {
    throw_bad_request(fmt::format("EngineOptions::saved_cache_bytes is {}: {} are the least", options.saved_cache_bytes, kLeastSavedBytes));
  }
}

}  // namespace

Engine::State::State(const Model& of, const EngineOptions& options)
    : model(of),
      max_running(options.max_running),
      pool(options.threads),
      forward(model.state_->model, Compute{kernels_for(selected_isa()), pool}, {.chunk = options.chunk}),
      cache(model.state_->model.kv_layout(to_cache_type(options.cache_type)),
            cache_options(model, model.state_->model.kv_layout(to_cache_type(options.cache_type)), options, forward.chunk())),
      backend(forward),
      engine(backend, cache, engine_options(options)),
      saved([&]() -> std::optional<SavedCache> {
        if (options.saved_cache.empty()) return std::nullopt;
        const KvSettings settings{.window = model.state_->window};
        SavedCache opened(options.saved_cache,
                          {.model_hash = hash_model(model.state_->reader.parts(), settings, pool),
                           .layout = cache.layout(),
                           .n_vocab = model.vocabulary_size()},
                          options.saved_cache_bytes);
        opened.restore(engine.prefix_cache());
        return opened;
      }()),
      thread(engine) {}

Engine::Engine(const Model& model, const EngineOptions& options)
    : state_(translating([&] {
        check_numbers(options);
        return std::make_shared<State>(model, options);
      })) {}

std::size_t Engine::context() const noexcept { return state_->thread.context(); }
const Model& Engine::model() const noexcept { return state_->model; }

EngineStats Engine::stats() const {
  return translating([&] {
    const BatchEngineStats stats = state_->thread.stats();
    return EngineStats{.running = stats.running,
                       .waiting = stats.waiting,
                       .prompt_tokens = stats.prompt_tokens,
                       .cached_tokens = stats.cached_tokens,
                       .drafted_tokens = stats.drafted_tokens,
                       .accepted_tokens = stats.accepted_tokens,
                       .preemptions = stats.preemptions,
                       .cache_used_bytes = stats.used_bytes,
                       .cache_budget_bytes = stats.budget_bytes,
                       .cached_positions = stats.prefix.positions};
  });
}

void Engine::save_cache() const {
  translating([&] {
    if (!state_->saved) return;
    state_->thread.between_steps([&](BatchEngine& engine) { state_->saved->save(engine.prefix_cache()); });
  });
}

std::vector<float> Engine::embed(std::string_view text) const {
  return translating([&] {
    const Model::State& model = *state_->model.state_;
    std::vector<Token> tokens = state_->model.tokenize(text, /*add_bos_eos=*/true);
    std::vector<float> embedding;
    state_->thread.between_steps([&](BatchEngine& engine) {
      embedding = quench::embed(state_->forward, engine.prefix_cache(), tokens, model.model.config().pooling);
    });
    return embedding;
  });
}

std::vector<TokenLogProbabilities> Engine::score(std::span<const Token> tokens, std::size_t top) const {
  return translating([&] {
    std::vector<quench::TokenLogProbabilities> found;
    state_->thread.between_steps([&](BatchEngine& engine) { found = quench::score(state_->forward, engine.prefix_cache(), tokens, top); });
    std::vector<TokenLogProbabilities> scores;
    scores.reserve(found.size());
    for (const auto& one : found) scores.push_back(to_log_probabilities(one, *state_->model.state_->tokenizer));
    return scores;
  });
}

// --- streams

struct Stream::State {
  std::shared_ptr<Engine::State> engine;
  std::string echo;
  bool finished = false;
  std::vector<bool> told;  ///< answers whose first text was given, the echo before it
  AnswerStream answers;

  [[nodiscard]] const Tokenizer& tokenizer() const noexcept { return *engine->model.state_->tokenizer; }
  [[nodiscard]] Event to_event(AnswerEvent found);
  [[nodiscard]] Answer take(std::size_t answer);
};

Event Stream::State::to_event(AnswerEvent found) {
  Event event;
  event.answer = found.answer;
  event.done = found.done;
  event.total = found.total;
  event.token = found.token;
  event.text = std::move(found.text);
  for (const auto& one : found.prompt_log_probabilities) event.prompt_log_probabilities.push_back(to_log_probabilities(one, tokenizer()));
  if (found.log_probabilities) event.log_probabilities = to_log_probabilities(*found.log_probabilities, tokenizer());
  switch (found.kind) {
    case AnswerEvent::Kind::kPrefill: event.kind = Event::Kind::kPrompt; return event;
    case AnswerEvent::Kind::kToken: event.kind = Event::Kind::kToken; break;
    case AnswerEvent::Kind::kEnd:
      event.kind = Event::Kind::kEnd;
      event.finish = found.failed ? Finish::kFailed : to_finish(found.finish);
      break;
  }
  if (!told[found.answer]) event.text.insert(0, echo);
  told[found.answer] = true;
  return event;
}

Answer Stream::State::take(std::size_t answer) {
  try {
    Answer taken = translating([&] { return to_answer(answers.take(answer), tokenizer()); });
    taken.text.insert(0, echo);
    return taken;
  } catch (const Error& error) {
    Answer failed;
    failed.finish = Finish::kFailed;
    failed.error = error;
    return failed;
  }
}

Stream::Stream(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

std::optional<Event> Stream::next() {
  return translating([&]() -> std::optional<Event> {
    auto event = state_->answers.next();
    if (!event) return std::nullopt;
    return state_->to_event(std::move(*event));
  });
}

std::optional<Event> Stream::next_within(std::chrono::milliseconds time) {
  return translating([&]() -> std::optional<Event> {
    auto event = state_->answers.next_within(time);
    if (!event) return std::nullopt;
    return state_->to_event(std::move(*event));
  });
}

bool Stream::done() const {
  return translating([&] { return state_->answers.done(); });
}

void Stream::cancel() {
  translating([&] { state_->answers.cancel(); });
}

std::vector<Answer> Stream::finish() {
  return translating([&] {
    if (std::exchange(state_->finished, true)) throw_bad_request("Stream::finish gives the answers once");
    while (state_->answers.next()) {
    }
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < state_->answers.n_answers(); ++i) answers.push_back(state_->take(i));
    const auto failed = [](const Answer& answer) { return answer.error.has_value(); };
    if (std::ranges::all_of(answers, failed)) throw Error(*answers.front().error);
    return answers;
  });
}

namespace {

std::vector<Token> prompt_of(const Request& request, const Model& model, const Tokenizer& tokenizer) {
  const int given = int{!request.prompt.empty()} + int{!request.prompt_tokens.empty()} + int{!request.messages.empty()};
  if (given != 1) throw_bad_request("a request takes exactly one of prompt, prompt_tokens and messages");
  if (!request.prompt.empty()) return tokenizer.encode(request.prompt);
  if (!request.prompt_tokens.empty()) return request.prompt_tokens;
  return model.chat_tokens(request.messages, request.thinking);
}

void check_numbers(const Request& request, const Tokenizer& tokenizer) {
  if (request.n_answers == 0) throw_bad_request("n_answers is 0: no answer is asked for");
  if (request.max_tokens == std::size_t{0}) throw_bad_request("max_tokens is 0: an answer of no tokens says nothing");
  check_timeout(request.timeout_seconds);
  for (const Token token : request.stop_tokens) {
    if (token >= tokenizer.vocab_size()) throw_bad_request(fmt::format("stop_tokens: {} is outside the vocabulary", token));
  }
}

StreamRequest stream_request(const Request& request, const Model& model, const Tokenizer& tokenizer, SamplerSettings settings,
                             std::size_t max_answers) {
  check_numbers(request, tokenizer);
  if (request.n_answers > max_answers) {
    throw_bad_request(fmt::format("{} answers are asked for, and {} run side by side at most", request.n_answers, max_answers));
  }
  StreamRequest result;
  result.prompt = prompt_of(request, model, tokenizer);
  result.priority = request.priority;
  GenerationOptions& options = result.options;
  options.deadline_seconds = request.timeout_seconds;
  options.must_fit = request.max_tokens.has_value();
  options.max_new_tokens = request.max_tokens.value_or(std::numeric_limits<std::size_t>::max());
  if (!request.ignore_end) options.stop_ids = tokenizer.end_tokens();
  options.stop_ids.insert(options.stop_ids.end(), request.stop_tokens.begin(), request.stop_tokens.end());
  options.stop_texts = request.stop;
  options.with_specials = request.show_special;
  options.speculate = request.speculate;
  options.log_probabilities = request.top_log_probabilities;
  options.prompt_log_probabilities = request.prompt_log_probabilities;
  for (const std::string& text : request.references) {
    auto reference = std::make_shared<SuffixAutomaton>();
    reference->append(tokenizer.encode_raw(text, Specials::kAsText));
    options.references.push_back(std::move(reference));
  }
  if (!settings.seed) settings.seed = random_seed();
  for (std::size_t i = 0; i < request.n_answers; ++i) {
    result.samplers.emplace_back(settings, tokenizer.vocab_size());
    settings.seed = *settings.seed + 1;
  }
  return result;
}

}  // namespace

Stream Engine::submit(const Request& request) const {
  return translating([&] {
    const Model::State& model = *state_->model.state_;
    const Tokenizer& tokenizer = *model.tokenizer;
    const bool thinks = !request.messages.empty() && model.needed_template().thinks(to_thinking(request.thinking));
    SamplerSettings settings = to_settings(request.sampling, sampling_defaults(state_->model.architecture(), thinks), *model.dry_breakers);
    StreamRequest made = stream_request(request, state_->model, tokenizer, std::move(settings), state_->max_running);
    std::string echo = request.echo ? tokenizer.decode(made.prompt, request.show_special) : std::string();
    const std::size_t n_answers = made.samplers.size();
    return Stream(std::unique_ptr<Stream::State>(new Stream::State{.engine = state_,
                                                                   .echo = std::move(echo),
                                                                   .told = std::vector<bool>(n_answers, false),
                                                                   .answers = AnswerStream(state_->thread, tokenizer, std::move(made))}));
  });
}

}  // namespace quench::api
