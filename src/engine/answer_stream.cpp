#include "engine/answer_stream.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <new>
#include <utility>

#include "engine/answer_record.h"

namespace quench {

/// Records belong to the engine's thread until their answer has ended, which the mutex orders.
struct AnswerStream::State {
  std::vector<AnswerRecord> records;
  std::vector<std::optional<Sampler>> samplers;
  std::optional<std::size_t> prompt_top;            ///< of GenerationOptions::prompt_log_probabilities
  std::vector<TokenLogProbabilities> prompt_found;  ///< complete before the first answer's first token

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::list<AnswerEvent> events;
  /// One for each answer that runs: an end is told even when there is no memory.
  std::list<AnswerEvent> ends;
  std::size_t n_running = 0;

  void add(AnswerEvent event) {
    std::list<AnswerEvent> one;
    one.push_back(std::move(event));
    {
      const std::lock_guard lock(mutex);
      events.splice(events.end(), one);
    }
    changed.notify_one();
  }
  /// Never allocates.
  void add_end(AnswerEvent event) noexcept {
    {
      const std::lock_guard lock(mutex);
      ends.front() = std::move(event);
      events.splice(events.end(), ends, ends.begin());
      n_running -= 1;
    }
    changed.notify_one();
  }
  [[nodiscard]] std::optional<AnswerEvent> take_event() {
    if (events.empty()) return std::nullopt;
    AnswerEvent event = std::move(events.front());
    events.pop_front();
    return event;
  }
};

class AnswerStream::Listener final : public RequestListener {
 public:
  explicit Listener(std::shared_ptr<State> state) : state_(std::move(state)), ended_(state_->records.size(), false) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  /// An engine that had no memory for the request drops it.
  ~Listener() override {
    if (std::ranges::find(ended_, false) == ended_.end()) return;
    AnswerReport report;
    report.end = AnswerEnd::kFailed;
    report.error = std::make_exception_ptr(std::bad_alloc());
    for (std::size_t answer = 0; answer < ended_.size(); ++answer) {
      if (!ended_[answer]) end(answer, report);
    }
  }

  void on_prefill(std::size_t done, std::size_t total) override {
    AnswerEvent event{.kind = AnswerEvent::Kind::kPrefill, .done = done, .total = total};
    const auto& found = state_->prompt_found;
    event.prompt_log_probabilities.assign(found.begin() + static_cast<std::ptrdiff_t>(prompt_told_), found.end());
    prompt_told_ = found.size();
    state_->add(std::move(event));
  }
  void on_prompt_token(std::size_t /*position*/, Token token, std::span<const float> logits) override {
    if (state_->prompt_top) state_->prompt_found.push_back(log_probabilities(logits, token, *state_->prompt_top));
  }
  bool on_token(std::size_t answer, Token token, std::span<const float> logits) override {
    AnswerRecord& record = state_->records[answer];
    AnswerEvent event{.kind = AnswerEvent::Kind::kToken, .answer = answer, .token = token, .text = record.push(token, logits)};
    if (const auto* found = record.last_log_probabilities()) event.log_probabilities = *found;
    state_->add(std::move(event));
    return !record.stopped();
  }
  void on_end(std::size_t answer, const AnswerReport& report, Sampler& sampler) noexcept override {
    state_->samplers[answer] = std::move(sampler);
    end(answer, report);
  }

 private:
  void end(std::size_t answer, const AnswerReport& report) noexcept {
    ended_[answer] = true;
    AnswerRecord& record = state_->records[answer];
    AnswerEvent event{.kind = AnswerEvent::Kind::kEnd, .answer = answer};
    try {
      event.text = record.finish(report);
    } catch (...) {
      record.fail(std::current_exception());
    }
    event.finish = record.finish_reason();
    event.failed = record.failed();
    state_->add_end(std::move(event));
  }

  std::shared_ptr<State> state_;
  std::vector<bool> ended_;
  std::size_t prompt_told_ = 0;  ///< of prompt_found
};

AnswerStream::AnswerStream(EngineThread& engine, const Tokenizer& tokenizer, StreamRequest request)
    : engine_(&engine), state_(std::make_shared<State>()) {
  EngineRequest submitted = engine_request(std::move(request.prompt), request.options, engine.context());
  submitted.samplers = std::move(request.samplers);
  submitted.priority = request.priority;
  submitted.adapter = request.adapter;
  for (std::size_t i = 0; i < submitted.samplers.size(); ++i) state_->records.emplace_back(tokenizer, request.options);
  state_->prompt_top = request.options.prompt_log_probabilities;
  state_->samplers.resize(submitted.samplers.size());
  state_->ends.resize(submitted.samplers.size());
  state_->n_running = submitted.samplers.size();
  submitted.listener = std::make_unique<Listener>(state_);
  id_ = engine.submit(std::move(submitted));
}

AnswerStream::~AnswerStream() {
  if (!state_) return;
  const bool complete = [this] {
    const std::lock_guard lock(state_->mutex);
    return state_->n_running == 0;
  }();
  if (complete) return;
  try {
    cancel();
  } catch (...) {
    // No memory to say so: the answers end by themselves.
  }
}

std::optional<AnswerEvent> AnswerStream::next() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->events.empty() || state_->n_running == 0; });
  return state_->take_event();
}

std::optional<AnswerEvent> AnswerStream::next_within(std::chrono::milliseconds time) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, time, [this] { return !state_->events.empty() || state_->n_running == 0; });
  return state_->take_event();
}

bool AnswerStream::done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->n_running == 0 && state_->events.empty();
}

void AnswerStream::cancel() { engine_->cancel(id_); }

std::size_t AnswerStream::n_answers() const noexcept { return state_->records.size(); }

GenerationResult AnswerStream::take(std::size_t answer) {
  GenerationResult result = state_->records[answer].take();
  result.prompt_log_probabilities = state_->prompt_found;
  return result;
}

Sampler AnswerStream::take_sampler(std::size_t answer) {
  auto& sampler = state_->samplers[answer];
  if (!sampler) throw std::bad_alloc();
  return std::move(*sampler);
}

}  // namespace quench
