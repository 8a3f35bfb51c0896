#include "engine/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace quench {
namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// One call of generate.
class Run {
 public:
  Run(Forward& forward, CachedSequence& sequence, const Tokenizer& tokenizer, Sampler& sampler, const GenerationOptions& options,
      const GenerationHooks& hooks)
      : forward_(forward),
        sequence_(sequence),
        sampler_(sampler),
        options_(options),
        hooks_(hooks),
        decoder_(tokenizer, options.with_specials),
        stops_(options.stop_texts) {}

  GenerationResult go(std::span<const Token> prompt) {
    check(prompt);
    if (prefill(prompt)) decode(prompt);
    if (result_.finish != FinishReason::kStopText) finish_text();
    return std::move(result_);
  }

 private:
  void check(std::span<const Token> prompt) const;
  [[nodiscard]] bool prefill(std::span<const Token> prompt);
  void decode(std::span<const Token> prompt);
  [[nodiscard]] bool commit(Token token);
  void finish_text();
  void say(const std::string& text);
  [[nodiscard]] bool cancelled() const { return hooks_.cancel != nullptr && hooks_.cancel->load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t context() const { return sequence_.kv().cache().context(); }

  Forward& forward_;
  CachedSequence& sequence_;
  Sampler& sampler_;
  const GenerationOptions& options_;
  const GenerationHooks& hooks_;
  StreamDecoder decoder_;
  StopMatcher stops_;
  std::span<const float> logits_;
  GenerationResult result_;
};

void Run::check(std::span<const Token> prompt) const {
  if (prompt.empty()) throw_bad_request("the prompt is empty: there is nothing to continue");
  const auto n_vocab = forward_.model().config().n_vocab;
  for (const Token token : prompt) {
    if (token >= n_vocab)
      throw_bad_request(fmt::format("token id {} in the prompt is outside the model's vocabulary of {}", token, n_vocab));
  }
  if (prompt.size() >= context()) {
    throw_bad_request(fmt::format("the prompt has {} tokens and the context {}: no room is left for an answer", prompt.size(), context()));
  }
  if (options_.must_fit && options_.max_new_tokens > context() - prompt.size()) {
    throw_bad_request(
        fmt::format("{} prompt tokens and {} new ones exceed the context of {}", prompt.size(), options_.max_new_tokens, context()));
  }
}

/// False when cancelled.
bool Run::prefill(std::span<const Token> prompt) {
  const std::size_t cached = sequence_.reuse(prompt);
  result_.stats.prompt_tokens = prompt.size();
  result_.stats.cached_tokens = cached;
  const auto rest = prompt.subspan(cached);
  sequence_.kv().check_room(rest.size(), forward_.chunk());
  const Stopwatch watch;
  for (std::size_t done = 0; done < rest.size();) {
    if (cancelled()) {
      result_.finish = FinishReason::kCancelled;
      return false;
    }
    const std::size_t step = std::min(forward_.chunk(), rest.size() - done);
    logits_ = sequence_.append(forward_, rest.subspan(done, step));
    done += step;
    result_.stats.prefill_seconds = watch.seconds();
    if (hooks_.on_prefill) hooks_.on_prefill(done, rest.size());
  }
  return true;
}

void Run::decode(std::span<const Token> prompt) {
  const std::size_t room = context() - prompt.size();
  const std::size_t limit = std::min(options_.max_new_tokens, room);
  sampler_.set_history(prompt);
  const Stopwatch watch;
  while (true) {
    if (result_.tokens.size() == limit) {
      result_.finish = limit == options_.max_new_tokens ? FinishReason::kLength : FinishReason::kContextFull;
      break;
    }
    if (cancelled()) {
      result_.finish = FinishReason::kCancelled;
      break;
    }
    const Token token = sampler_.next(logits_);
    if (!commit(token)) break;
    if (result_.tokens.size() < limit) logits_ = sequence_.append(forward_, std::span(&token, 1));
  }
  result_.stats.generated_tokens = result_.tokens.size();
  result_.stats.decode_seconds = watch.seconds();
}

/// False when the token ends the answer.
bool Run::commit(Token token) {
  if (std::ranges::find(options_.stop_ids, token) != options_.stop_ids.end()) {
    result_.finish = FinishReason::kEndToken;
    result_.end_token = token;
    return false;
  }
  result_.tokens.push_back(token);
  if (hooks_.on_token) hooks_.on_token(token);
  say(stops_.push(decoder_.push(token)));
  if (!stops_.matched()) return true;
  result_.finish = FinishReason::kStopText;
  result_.stop_text = stops_.matched();
  return false;
}

/// Gives out what decoder and matcher still hold.
void Run::finish_text() {
  say(stops_.push(decoder_.flush()));
  if (!stops_.matched()) say(stops_.flush());
}

void Run::say(const std::string& text) {
  if (text.empty()) return;
  result_.text += text;
  if (hooks_.on_text) hooks_.on_text(text);
}

double rate(std::size_t tokens, double seconds) { return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0; }

}  // namespace

std::string_view finish_name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kEndToken: return "stop";
    case FinishReason::kStopText: return "stop text";
    case FinishReason::kLength: return "length";
    case FinishReason::kContextFull: return "context full";
    case FinishReason::kCancelled: return "cancelled";
  }
  return "?";
}

double GenerationStats::prefill_tokens_per_second() const noexcept { return rate(prompt_tokens - cached_tokens, prefill_seconds); }
double GenerationStats::decode_tokens_per_second() const noexcept { return rate(generated_tokens, decode_seconds); }

GenerationResult generate(Forward& forward, CachedSequence& sequence, const Tokenizer& tokenizer, Sampler& sampler,
                          std::span<const Token> prompt, const GenerationOptions& options, const GenerationHooks& hooks) {
  return Run(forward, sequence, tokenizer, sampler, options, hooks).go(prompt);
}

}  // namespace quench
