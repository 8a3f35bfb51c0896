#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/token.h"
#include "engine/drafter.h"
#include "engine/finish_reason.h"
#include "engine/log_probabilities.h"

namespace quench {

struct GenerationOptions {
  std::size_t max_new_tokens = 2048;
  /// true: Error(kBadRequest) at the start when prompt and max_new_tokens together exceed the context; false: end with kContextFull.
  bool must_fit = false;
  std::vector<Token> stop_ids{};  ///< any of them ends the answer and is not part of it
  std::vector<std::string> stop_texts{};
  bool with_specials = false;  ///< the text shows control tokens
  bool speculate = true;
  std::vector<ReferenceText> references{};  ///< what the answer may copy from
  /// Log-probabilities of each token and of that many of the most probable ones; nothing: none.
  std::optional<std::size_t> log_probabilities{};
  /// The same for the tokens of the prompt but the first, none of which is taken from the prefix cache then.
  std::optional<std::size_t> prompt_log_probabilities{};
  std::optional<double> deadline_seconds{};  ///< after submission; later the answer ends as it is
};

struct GenerationStats {
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;  ///< of the prompt, not computed again
  std::size_t generated_tokens = 0;
  std::size_t drafted_tokens = 0;   ///< guessed by speculation
  std::size_t accepted_tokens = 0;  ///< of those
  double prefill_seconds = 0.0;     ///< prompt tokens beyond the cached ones
  double decode_seconds = 0.0;      ///< from the first row of logits on, sampling included

  [[nodiscard]] double prefill_tokens_per_second() const noexcept;
  [[nodiscard]] double decode_tokens_per_second() const noexcept;
};

struct GenerationResult {
  std::vector<Token> tokens;  ///< committed ones; without the id that ended the answer
  std::string text;           ///< all that went to on_text
  FinishReason finish = FinishReason::kLength;
  std::optional<Token> end_token;                                 ///< which id ended it
  std::optional<std::size_t> stop_text;                           ///< index of the stop text that matched
  std::vector<TokenLogProbabilities> log_probabilities;           ///< of each token, where they are asked for
  std::vector<TokenLogProbabilities> prompt_log_probabilities{};  ///< of the prompt's but the first, where they are asked for
  GenerationStats stats;
};

}  // namespace quench
