#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "engine/cached_sequence.h"
#include "model/forward.h"
#include "sample/sampler.h"
#include "text/tokenizer.h"

namespace quench {

enum class FinishReason {
  kEndToken,     ///< the model ended its turn, or a stop id came
  kStopText,     ///< a stop text matched; it is not part of the answer
  kLength,       ///< max_new_tokens
  kContextFull,  ///< the context has no room for another token
  kCancelled
};

/// "stop", "stop text", "length", "context full", "cancelled"
[[nodiscard]] std::string_view finish_name(FinishReason reason) noexcept;

struct GenerationOptions {
  std::size_t max_new_tokens = 2048;
  /// true: Error(kBadRequest) at the start when prompt and max_new_tokens together exceed the context; false: end with kContextFull.
  bool must_fit = false;
  std::vector<Token> stop_ids{};  ///< any of them ends the answer and is not part of it
  std::vector<std::string> stop_texts{};
  bool with_specials = false;  ///< the text shows control tokens
};

/// Called on the generating thread; each may be empty. An exception from a callback ends the generation as an error does.
struct GenerationHooks {
  std::function<void(std::string_view text)> on_text{};  ///< never ends inside a UTF-8 sequence, never holds part of a stop
  std::function<void(Token token)> on_token{};           ///< each committed token, before its text
  std::function<void(std::size_t done, std::size_t total)> on_prefill{};
  const std::atomic<bool>* cancel = nullptr;  ///< looked at between prefill chunks and between tokens
};

struct GenerationStats {
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;  ///< of the prompt, not computed again
  std::size_t generated_tokens = 0;
  double prefill_seconds = 0.0;  ///< prompt tokens beyond the cached ones
  double decode_seconds = 0.0;   ///< from the first row of logits on, sampling included

  [[nodiscard]] double prefill_tokens_per_second() const noexcept;
  [[nodiscard]] double decode_tokens_per_second() const noexcept;
};

struct GenerationResult {
  std::vector<Token> tokens;  ///< committed ones; without the id that ended the answer
  std::string text;           ///< all that went to on_text
  FinishReason finish = FinishReason::kLength;
  std::optional<Token> end_token;        ///< which id ended it
  std::optional<std::size_t> stop_text;  ///< index of the stop text that matched
  GenerationStats stats;
};

/// Continues `prompt`. Reuses the prefix that `sequence` already holds, prefills the rest, and draws tokens until something ends it.
/// The sampler's history becomes the prompt.
///
/// Throws Error(kBadRequest) for an empty prompt, a token outside the model's vocabulary, or a prompt that leaves no room in the
/// context (with both numbers); whatever Forward and Sampler throw. After an error or a cancellation the sequence is valid and holds
/// a prefix of prompt and answer.
[[nodiscard]] GenerationResult generate(Forward& forward, CachedSequence& sequence, const Tokenizer& tokenizer, Sampler& sampler,
                                        std::span<const Token> prompt, const GenerationOptions& options, const GenerationHooks& hooks = {});

}  // namespace quench
