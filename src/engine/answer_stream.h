#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/token.h"
#include "engine/engine_thread.h"
#include "engine/generation_options.h"
#include "sample/sampler.h"
#include "text/tokenizer.h"

namespace quench {

/// Something that happened to a request.
struct AnswerEvent {
  enum class Kind {
    kPrefill,  ///< done of total tokens of the prompt are computed
    kToken,    ///< a token was committed
    kEnd       ///< the answer is complete, or failed
  };
  Kind kind = Kind::kPrefill;
  std::size_t answer = 0;
  std::size_t done = 0;
  std::size_t total = 0;
  Token token = 0;
  /// What the token, or the end, lets out: never ends inside a UTF-8 sequence, never holds part of a stop; often empty.
  std::string text{};
  std::optional<TokenLogProbabilities> log_probabilities{};
  /// kPrefill: of the prompt's tokens since the event before, where they are asked for.
  std::vector<TokenLogProbabilities> prompt_log_probabilities{};
  FinishReason finish = FinishReason::kCancelled;  ///< kEnd
  bool failed = false;                             ///< kEnd: take throws why
};

struct StreamRequest {
  std::vector<Token> prompt{};
  std::vector<Sampler> samplers{};  ///< one for each answer
  GenerationOptions options{};
  int priority = 0;
  std::uint64_t adapter = 0;
};

/// The answers to one request, as they come from an EngineThread. For one thread at a time, any one. What nobody has taken waits, so a slow
/// reader holds up nobody. Destroying it cancels what is not complete.
class AnswerStream {
 public:
  /// The tokenizer outlives the answers, the engine this. Throws Error(kBadRequest) and Error(kOutOfMemory) as EngineThread::submit does.
  AnswerStream(EngineThread& engine, const Tokenizer& tokenizer, StreamRequest request);
  AnswerStream(AnswerStream&&) noexcept = default;
  AnswerStream& operator=(AnswerStream&&) = delete;
  AnswerStream(const AnswerStream&) = delete;
  AnswerStream& operator=(const AnswerStream&) = delete;
  ~AnswerStream();

  /// Waits for the next event; nothing after the end of the last answer.
  [[nodiscard]] std::optional<AnswerEvent> next();
  /// Waits no longer than that; nothing, too, when nothing came.
  [[nodiscard]] std::optional<AnswerEvent> next_within(std::chrono::milliseconds time);
  /// Whether all answers have ended and all events were taken.
  [[nodiscard]] bool done() const;
  /// The answers end with kCancelled, after the step under way.
  void cancel();

  [[nodiscard]] std::size_t n_answers() const noexcept;
  /// Once, after the answer's kEnd: its result, or what made it fail is thrown.
  [[nodiscard]] GenerationResult take(std::size_t answer = 0);
  /// Once, after the answer's kEnd: the sampler as the answer left it.
  [[nodiscard]] Sampler take_sampler(std::size_t answer = 0);

 private:
  struct State;
  class Listener;

  EngineThread* engine_;
  std::shared_ptr<State> state_;
  RequestId id_ = 0;
};

}  // namespace quench
