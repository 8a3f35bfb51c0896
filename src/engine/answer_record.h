#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/token.h"
#include "engine/answer_text.h"
#include "engine/engine_request.h"
#include "engine/generation_options.h"
#include "engine/log_probabilities.h"

namespace quench {

/// The request that `options` ask for, still without samplers and listener. Throws Error(kBadRequest) when the prompt leaves no room in the
/// context (with both numbers).
[[nodiscard]] EngineRequest engine_request(std::vector<Token> prompt, const GenerationOptions& options, std::size_t context);

/// What becomes of one answer, token by token.
class AnswerRecord {
 public:
  /// The tokenizer outlives this. Throws Error(kBadRequest) for an empty stop text.
  AnswerRecord(const Tokenizer& tokenizer, const GenerationOptions& options);

  /// The text that a committed token lets out. `logits` are those it was drawn from.
  std::string push(Token token, std::span<const float> logits);
  /// Whether a stop text has matched: the answer is over.
  [[nodiscard]] bool stopped() const noexcept { return text_.matched_stop().has_value(); }
  /// The log-probabilities of the last token, where they are asked for.
  [[nodiscard]] const TokenLogProbabilities* last_log_probabilities() const noexcept;
  /// The text that was still held, once the engine has ended the answer.
  std::string finish(const AnswerReport& report);
  /// Instead of what finish said.
  void fail(std::exception_ptr error) noexcept { error_ = std::move(error); }
  [[nodiscard]] bool failed() const noexcept { return error_ != nullptr; }
  /// After finish.
  [[nodiscard]] FinishReason finish_reason() const noexcept { return result_.finish; }
  /// After finish, once. Throws what made the answer fail.
  [[nodiscard]] GenerationResult take();

 private:
  std::size_t max_new_tokens_;
  std::optional<std::size_t> n_top_;
  AnswerText text_;
  GenerationResult result_;
  std::exception_ptr error_;
};

}  // namespace quench
