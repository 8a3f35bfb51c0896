#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "quench/quench.h"
#include "quench/quench.hpp"

// The C functions are the C++ ones, with errors as codes.

namespace api = quench::api;

struct quench_model {
  api::Model model;
};

struct quench_engine {
  api::Engine engine;
};

struct quench_stream {
  api::Stream stream;
  // What the last event points at.
  api::Event event{};
  quench_token_probability chosen{};
  std::vector<quench_token_probability> top{};
  std::vector<api::Answer> answers{};
  std::optional<api::Error> failure{};  ///< of all of them
  bool finished = false;
};

struct quench_conversation {
  api::Conversation conversation;
  api::Conversation::OnPrompt on_prompt{};
  api::Answer answer{};  ///< what the last turn's quench_answer points at
};

namespace {

thread_local std::string last_error;

quench_status failure(quench_status status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

/// Runs `action`, which gives a status or nothing; what it throws becomes a status and this thread's last error.
template <typename Action>
quench_status guarded(const Action& action) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(action())>) {
      action();
      return QUENCH_OK;
    } else {
      return action();
    }
  } catch (const api::Error& error) {
    return failure(static_cast<quench_status>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return failure(QUENCH_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return failure(QUENCH_INTERNAL, error.what());
  } catch (...) {
    return failure(QUENCH_INTERNAL, "unknown error");
  }
}

void require(bool holds, const char* what) {
  if (!holds) throw api::Error(api::ErrorCode::kBadRequest, what);
}

/// The caller's struct over the defaults: of an older header, the end of it is missing.
template <typename Struct>
Struct read_struct(const Struct* given, void (*init)(Struct*, std::size_t)) {
  Struct full;
  init(&full, sizeof(full));
  if (given == nullptr) return full;
  require(given->struct_size >= sizeof(std::size_t), "struct_size is not set: fill the struct with its _init function");
  require(given->struct_size <= sizeof(Struct), "struct_size is larger than this library knows: it is older than the header");
  std::memcpy(&full, given, given->struct_size);
  return full;
}

/// Defaults into the caller's struct, which may be of an older header, or of a newer one.
template <typename Struct>
void init_struct(Struct* out, std::size_t struct_size, const Struct& defaults) noexcept {
  std::memset(out, 0, struct_size);
  std::memcpy(out, &defaults, std::min(struct_size, sizeof(Struct)));
  out->struct_size = struct_size;
}

/// Before anything is done whose result would be lost.
template <typename Struct>
void check_out(const Struct* out) {
  require(out != nullptr, "the struct for the result is NULL");
  require(out->struct_size >= sizeof(std::size_t) && out->struct_size <= sizeof(Struct), "struct_size is not set, or larger than known");
}

template <typename Struct>
void write_struct(Struct* out, const Struct& value) {
  const std::size_t size = out->struct_size;
  std::memcpy(out, &value, size);
  out->struct_size = size;
}

template <typename T>
T* copy_out(const T* values, std::size_t count) {
  auto* memory = static_cast<T*>(std::malloc(std::max<std::size_t>(count, 1) * sizeof(T)));
  if (memory == nullptr) throw std::bad_alloc();
  std::copy_n(values, count, memory);
  return memory;
}

/// A text with a zero byte behind it.
char* copy_text(const std::string& text) { return copy_out(text.c_str(), text.size() + 1); }

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

template <typename T>
std::span<const T> as_span(const T* values, std::size_t count, const char* what) {
  require(values != nullptr || count == 0, what);
  return {values, count};
}

/// what: "a stop text"
std::vector<std::string> to_texts(const char* const* texts, std::size_t count, const std::string& what) {
  const std::string is_null = what + " is NULL";
  std::vector<std::string> result;
  for (const char* text : as_span(texts, count, is_null.c_str())) {
    require(text != nullptr, is_null.c_str());
    result.emplace_back(text);
  }
  return result;
}

api::Thinking to_thinking(std::int32_t thinking) {
  require(thinking >= QUENCH_THINKING_DEFAULT && thinking <= QUENCH_THINKING_OFF, "thinking is none of quench_thinking");
  return static_cast<api::Thinking>(thinking);
}

api::Role to_role(const char* role) {
  const std::string name = text_or_empty(role);
  if (name == "system") return api::Role::kSystem;
  if (name == "user") return api::Role::kUser;
  if (name == "assistant") return api::Role::kAssistant;
  throw api::Error(api::ErrorCode::kBadRequest, "a message's role is '" + name + "'; there are system, user and assistant");
}

std::optional<double> given(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }
std::optional<int> given(std::int32_t value) { return value == QUENCH_AS_RECOMMENDED ? std::nullopt : std::optional<int>(value); }

api::Sampling to_sampling(const quench_sampling* options) {
  const quench_sampling from = read_struct(options, quench_sampling_init_sized);
  api::Sampling sampling;
  sampling.temperature = given(from.temperature);
  if (from.top_k >= 0) sampling.top_k = from.top_k;
  sampling.top_p = given(from.top_p);
  sampling.min_p = given(from.min_p);
  sampling.repeat_penalty = given(from.repeat_penalty);
  sampling.frequency_penalty = given(from.frequency_penalty);
  sampling.presence_penalty = given(from.presence_penalty);
  for (const auto& bias : as_span(from.logit_bias, from.n_logit_bias, "logit_bias is NULL")) {
    sampling.logit_bias.push_back({bias.token, bias.bias});
  }
  if (from.has_seed != 0) sampling.seed = from.seed;
  sampling.repeat_last_n = given(from.repeat_last_n);
  sampling.typical_p = given(from.typical_p);
  sampling.top_n_sigma = given(from.top_n_sigma);
  sampling.xtc_probability = given(from.xtc_probability);
  sampling.xtc_threshold = given(from.xtc_threshold);
  sampling.min_keep = given(from.min_keep);
  sampling.dynatemp_range = given(from.dynatemp_range);
  sampling.dynatemp_exponent = given(from.dynatemp_exponent);
  sampling.dry_multiplier = given(from.dry_multiplier);
  sampling.dry_base = given(from.dry_base);
  sampling.dry_allowed_length = given(from.dry_allowed_length);
  sampling.dry_penalty_last_n = given(from.dry_penalty_last_n);
  if (from.dry_breakers != nullptr || from.n_dry_breakers > 0) {
    sampling.dry_breakers = to_texts(from.dry_breakers, from.n_dry_breakers, "a text of dry_breakers");
  }
  sampling.mirostat = given(from.mirostat);
  sampling.mirostat_tau = given(from.mirostat_tau);
  sampling.mirostat_eta = given(from.mirostat_eta);
  if (from.samplers != nullptr) sampling.samplers = from.samplers;
  return sampling;
}

api::Request to_request(const quench_request* options) {
  const quench_request from = read_struct(options, quench_request_init_sized);
  api::Request request;
  request.prompt = text_or_empty(from.prompt);
  const auto tokens = as_span(from.prompt_tokens, from.n_prompt_tokens, "prompt_tokens is NULL");
  request.prompt_tokens.assign(tokens.begin(), tokens.end());
  for (const auto& message : as_span(from.messages, from.n_messages, "messages is NULL")) {
    require(message.content != nullptr, "a message's content is NULL");
    request.messages.push_back({to_role(message.role), message.content});
  }
  request.thinking = to_thinking(from.thinking);
  if (from.max_tokens > 0) request.max_tokens = from.max_tokens;
  request.n_answers = from.n_answers;
  request.stop = to_texts(from.stop, from.n_stop, "a stop text");
  const auto stop_tokens = as_span(from.stop_tokens, from.n_stop_tokens, "stop_tokens is NULL");
  request.stop_tokens.assign(stop_tokens.begin(), stop_tokens.end());
  request.ignore_end = from.ignore_end != 0;
  request.show_special = from.show_special != 0;
  request.echo = from.echo != 0;
  request.sampling = to_sampling(from.sampling);
  if (from.top_log_probabilities >= 0) request.top_log_probabilities = static_cast<std::size_t>(from.top_log_probabilities);
  request.priority = from.priority;
  if (from.timeout_seconds != 0.0) request.timeout_seconds = from.timeout_seconds;
  request.speculate = from.speculate != 0;
  request.references = to_texts(from.references, from.n_references, "a reference text");
  return request;
}

quench_answer to_answer(const api::Answer& from) {
  return {.struct_size = sizeof(quench_answer),
          .text = from.text.c_str(),
          .text_bytes = from.text.size(),
          .tokens = from.tokens.data(),
          .n_tokens = from.tokens.size(),
          .finish = static_cast<std::int32_t>(from.finish),
          .prompt_tokens = from.prompt_tokens,
          .cached_tokens = from.cached_tokens,
          .prompt_seconds = from.prompt_seconds,
          .answer_seconds = from.answer_seconds};
}

quench_token_probability to_probability(const api::TokenProbability& from) {
  return {.token = from.token, .log_probability = from.log_probability, .text = from.text.c_str(), .text_bytes = from.text.size()};
}

/// A turn of a conversation.
template <typename Turn>
quench_status take_turn(quench_conversation* conversation, quench_on_text on_text, void* user, quench_answer* answer, const Turn& turn) {
  return guarded([&] {
    require(conversation != nullptr, "conversation is NULL");
    if (answer != nullptr) check_out(answer);
    api::Conversation::OnText say;
    if (on_text != nullptr) {
      say = [on_text, user](std::string_view text) {
        const std::string terminated(text);
        return on_text(terminated.c_str(), terminated.size(), user) != 0;
      };
    }
    conversation->answer = turn(say);
    if (answer != nullptr) write_struct(answer, to_answer(conversation->answer));
  });
}

}  // namespace

extern "C" {

const char* quench_version(void) { return api::version().data(); }
quench_status quench_on_warning(void (*on_warning)(const char* message, void* user), void* user) {
  return guarded([&] {
    if (on_warning == nullptr) return api::on_warning({});
    api::on_warning([=](std::string_view message) { on_warning(std::string(message).c_str(), user); });
  });
}
const char* quench_last_error(void) { return last_error.c_str(); }
void quench_free(void* memory) { std::free(memory); }

void quench_model_options_init_sized(quench_model_options* options, size_t struct_size) {
  quench_model_options full{};
  init_struct(options, struct_size, full);
}

quench_status quench_model_load(const char* path, const quench_model_options* options, quench_model** model) {
  return guarded([&] {
    require(path != nullptr && model != nullptr, "path or model is NULL");
    *model = nullptr;
    const quench_model_options from = read_struct(options, quench_model_options_init_sized);
    api::ModelOptions to;
    to.threads = from.threads;
    to.window = from.window;
    to.chat_template = text_or_empty(from.chat_template);
    to.pretokenizer = text_or_empty(from.pretokenizer);
    if (from.progress != nullptr)
      to.progress = [from](std::uint64_t done, std::uint64_t total) { from.progress(done, total, from.progress_user); };
    *model = new quench_model{api::Model::load(path, to)};
  });
}

void quench_model_free(quench_model* model) { delete model; }
const char* quench_model_architecture(const quench_model* model) {
  return model == nullptr ? nullptr : model->model.architecture().c_str();
}
size_t quench_model_vocabulary_size(const quench_model* model) { return model == nullptr ? 0 : model->model.vocabulary_size(); }
size_t quench_model_trained_context(const quench_model* model) { return model == nullptr ? 0 : model->model.trained_context(); }
size_t quench_model_embedding_size(const quench_model* model) { return model == nullptr ? 0 : model->model.embedding_size(); }

quench_status quench_model_tokenize(const quench_model* model, const char* text, size_t text_bytes, int add_bos_eos, int special,
                                    uint32_t** tokens, size_t* n_tokens) {
  return guarded([&] {
    require(model != nullptr && (text != nullptr || text_bytes == 0) && tokens != nullptr && n_tokens != nullptr, "an argument is NULL");
    const auto found = model->model.tokenize({text == nullptr ? "" : text, text_bytes}, add_bos_eos != 0, special != 0);
    *tokens = copy_out(found.data(), found.size());
    *n_tokens = found.size();
  });
}

quench_status quench_model_detokenize(const quench_model* model, const uint32_t* tokens, size_t n_tokens, int special, char** text,
                                      size_t* text_bytes) {
  return guarded([&] {
    require(model != nullptr && text != nullptr, "an argument is NULL");
    const std::string found = model->model.detokenize(as_span(tokens, n_tokens, "tokens is NULL"), special != 0);
    *text = copy_text(found);
    if (text_bytes != nullptr) *text_bytes = found.size();
  });
}

void quench_engine_options_init_sized(quench_engine_options* options, size_t struct_size) {
  const api::EngineOptions defaults;
  quench_engine_options full{};
  full.chunk = defaults.chunk;
  full.max_running = defaults.max_running;
  full.max_waiting = defaults.max_waiting;
  full.saved_cache_bytes = defaults.saved_cache_bytes;
  init_struct(options, struct_size, full);
}

quench_status quench_engine_new(const quench_model* model, const quench_engine_options* options, quench_engine** engine) {
  return guarded([&] {
    require(model != nullptr && engine != nullptr, "model or engine is NULL");
    *engine = nullptr;
    const quench_engine_options from = read_struct(options, quench_engine_options_init_sized);
    require(from.cache_type == QUENCH_CACHE_F16 || from.cache_type == QUENCH_CACHE_Q8_0, "cache_type is none of quench_cache_type");
    api::EngineOptions to;
    to.threads = from.threads;
    to.context = from.context;
    to.cache_bytes = from.cache_bytes;
    to.cache_type = static_cast<api::CacheType>(from.cache_type);
    to.chunk = from.chunk;
    to.max_running = from.max_running;
    to.max_waiting = from.max_waiting;
    to.saved_cache = text_or_empty(from.saved_cache);
    to.saved_cache_bytes = from.saved_cache_bytes;
    *engine = new quench_engine{api::Engine(model->model, to)};
  });
}

void quench_engine_free(quench_engine* engine) { delete engine; }
size_t quench_engine_context(const quench_engine* engine) { return engine == nullptr ? 0 : engine->engine.context(); }

quench_status quench_engine_get_stats(const quench_engine* engine, quench_engine_stats* stats) {
  return guarded([&] {
    require(engine != nullptr, "engine is NULL");
    check_out(stats);
    const api::EngineStats from = engine->engine.stats();
    write_struct(stats, {.struct_size = sizeof(*stats),
                         .running = from.running,
                         .waiting = from.waiting,
                         .prompt_tokens = from.prompt_tokens,
                         .cached_tokens = from.cached_tokens,
                         .drafted_tokens = from.drafted_tokens,
                         .accepted_tokens = from.accepted_tokens,
                         .preemptions = from.preemptions,
                         .cache_used_bytes = from.cache_used_bytes,
                         .cache_budget_bytes = from.cache_budget_bytes,
                         .cached_positions = from.cached_positions});
  });
}

quench_status quench_engine_save_cache(const quench_engine* engine) {
  return guarded([&] {
    require(engine != nullptr, "engine is NULL");
    engine->engine.save_cache();
  });
}

quench_status quench_engine_embed(const quench_engine* engine, const char* text, float* embedding) {
  return guarded([&] {
    require(engine != nullptr && text != nullptr && embedding != nullptr, "an argument is NULL");
    std::ranges::copy(engine->engine.embed(text), embedding);
  });
}

quench_status quench_engine_score(const quench_engine* engine, const uint32_t* tokens, size_t n_tokens, float* log_probabilities) {
  return guarded([&] {
    require(engine != nullptr && (log_probabilities != nullptr || n_tokens < 2), "an argument is NULL");
    for (const auto& one : engine->engine.score(as_span(tokens, n_tokens, "tokens is NULL"))) {
      *log_probabilities++ = one.chosen.log_probability;
    }
  });
}

void quench_sampling_init_sized(quench_sampling* sampling, size_t struct_size) {
  constexpr double kRecommended = std::numeric_limits<double>::quiet_NaN();
  quench_sampling full{};
  full.temperature = kRecommended;
  full.top_k = -1;
  full.top_p = kRecommended;
  full.min_p = kRecommended;
  full.repeat_penalty = kRecommended;
  full.frequency_penalty = kRecommended;
  full.presence_penalty = kRecommended;
  full.repeat_last_n = QUENCH_AS_RECOMMENDED;
  full.typical_p = kRecommended;
  full.top_n_sigma = kRecommended;
  full.xtc_probability = kRecommended;
  full.xtc_threshold = kRecommended;
  full.min_keep = QUENCH_AS_RECOMMENDED;
  full.dynatemp_range = kRecommended;
  full.dynatemp_exponent = kRecommended;
  full.dry_multiplier = kRecommended;
  full.dry_base = kRecommended;
  full.dry_allowed_length = QUENCH_AS_RECOMMENDED;
  full.dry_penalty_last_n = QUENCH_AS_RECOMMENDED;
  full.mirostat = QUENCH_AS_RECOMMENDED;
  full.mirostat_tau = kRecommended;
  full.mirostat_eta = kRecommended;
  init_struct(sampling, struct_size, full);
}

void quench_request_init_sized(quench_request* request, size_t struct_size) {
  quench_request full{};
  full.n_answers = 1;
  full.top_log_probabilities = -1;
  full.speculate = 1;
  init_struct(request, struct_size, full);
}

quench_status quench_engine_submit(const quench_engine* engine, const quench_request* request, quench_stream** stream) {
  return guarded([&] {
    require(engine != nullptr && request != nullptr && stream != nullptr, "an argument is NULL");
    *stream = nullptr;
    *stream = new quench_stream{.stream = engine->engine.submit(to_request(request))};
  });
}

quench_status quench_stream_next(quench_stream* stream, quench_event* event) {
  return guarded([&]() -> quench_status {
    require(stream != nullptr, "stream is NULL");
    check_out(event);
    auto next = stream->stream.next();
    if (!next) return QUENCH_END;
    stream->event = std::move(*next);
    const api::Event& from = stream->event;
    quench_event to{.struct_size = sizeof(quench_event),
                    .kind = static_cast<std::int32_t>(from.kind),
                    .answer = from.answer,
                    .done = from.done,
                    .total = from.total,
                    .token = from.token,
                    .text = from.text.c_str(),
                    .text_bytes = from.text.size(),
                    .chosen = nullptr,
                    .top = nullptr,
                    .n_top = 0,
                    .finish = static_cast<std::int32_t>(from.finish),
                    .failed = from.kind == api::Event::Kind::kEnd && from.finish == api::Finish::kFailed ? 1 : 0};
    stream->top.clear();
    if (from.log_probabilities) {
      stream->chosen = to_probability(from.log_probabilities->chosen);
      for (const auto& one : from.log_probabilities->top) stream->top.push_back(to_probability(one));
      to.chosen = &stream->chosen;
      to.top = stream->top.data();
      to.n_top = stream->top.size();
    }
    write_struct(event, to);
    return QUENCH_OK;
  });
}

void quench_stream_cancel(quench_stream* stream) {
  (void)guarded([&] {
    if (stream != nullptr) stream->stream.cancel();
  });
}

quench_status quench_stream_answer(quench_stream* stream, size_t answer, quench_answer* out) {
  return guarded([&] {
    require(stream != nullptr, "stream is NULL");
    check_out(out);
    if (!stream->finished) {
      stream->finished = true;
      try {
        stream->answers = stream->stream.finish();
      } catch (const api::Error& error) {
        stream->failure = error;
      }
    }
    if (stream->failure) throw api::Error(*stream->failure);
    require(answer < stream->answers.size(), "there is no such answer");
    const api::Answer& found = stream->answers[answer];
    if (found.error) throw api::Error(*found.error);
    write_struct(out, to_answer(found));
  });
}

void quench_stream_free(quench_stream* stream) { delete stream; }

void quench_conversation_options_init_sized(quench_conversation_options* options, size_t struct_size) {
  const api::ConversationOptions defaults;
  quench_conversation_options full{};
  full.max_tokens = defaults.max_tokens;
  full.speculate = 1;
  init_struct(options, struct_size, full);
}

quench_status quench_conversation_new(const quench_engine* engine, const quench_conversation_options* options,
                                      quench_conversation** conversation) {
  return guarded([&] {
    require(engine != nullptr && conversation != nullptr, "engine or conversation is NULL");
    *conversation = nullptr;
    const quench_conversation_options from = read_struct(options, quench_conversation_options_init_sized);
    api::ConversationOptions to;
    to.system = text_or_empty(from.system);
    to.thinking = to_thinking(from.thinking);
    to.sampling = to_sampling(from.sampling);
    to.stop = to_texts(from.stop, from.n_stop, "a stop text");
    to.max_tokens = from.max_tokens;
    to.speculate = from.speculate != 0;
    if (from.timeout_seconds != 0.0) to.timeout_seconds = from.timeout_seconds;
    api::Conversation::OnPrompt on_prompt;
    if (from.on_prompt != nullptr) {
      on_prompt = [tell = from.on_prompt, user = from.on_prompt_user](std::size_t done, std::size_t total) {
        return tell(done, total, user) != 0;
      };
    }
    *conversation = new quench_conversation{.conversation = api::Conversation(engine->engine, to), .on_prompt = std::move(on_prompt)};
  });
}

void quench_conversation_free(quench_conversation* conversation) { delete conversation; }

quench_status quench_conversation_send(quench_conversation* conversation, const char* message, quench_on_text on_text, void* user,
                                       quench_answer* answer) {
  return take_turn(conversation, on_text, user, answer, [&](const auto& say) {
    require(message != nullptr, "message is NULL");
    return conversation->conversation.send(message, say, conversation->on_prompt);
  });
}

quench_status quench_conversation_regenerate(quench_conversation* conversation, quench_on_text on_text, void* user, quench_answer* answer) {
  return take_turn(conversation, on_text, user, answer,
                   [&](const auto& say) { return conversation->conversation.regenerate(say, conversation->on_prompt); });
}

quench_status quench_conversation_undo(quench_conversation* conversation) {
  return guarded([&]() -> quench_status {
    require(conversation != nullptr, "conversation is NULL");
    return conversation->conversation.undo() ? QUENCH_OK : QUENCH_END;
  });
}

void quench_conversation_cancel(quench_conversation* conversation) {
  if (conversation != nullptr) conversation->conversation.cancel();
}
quench_status quench_conversation_reset(quench_conversation* conversation) {
  return guarded([&] {
    require(conversation != nullptr, "conversation is NULL");
    conversation->conversation.reset();
  });
}

quench_status quench_conversation_to_json(const quench_conversation* conversation, char** json) {
  return guarded([&] {
    require(conversation != nullptr && json != nullptr, "conversation or json is NULL");
    *json = copy_text(conversation->conversation.to_json());
  });
}

quench_status quench_conversation_from_json(quench_conversation* conversation, const char* json) {
  return guarded([&] {
    require(conversation != nullptr && json != nullptr, "conversation or json is NULL");
    conversation->conversation.from_json(json);
  });
}

}  // extern "C"
