#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/token.h"
#include "text/tokenizer.h"

namespace quench {

/// llama.cpp's default breakers: line feed, colon, double quote, asterisk.
[[nodiscard]] std::vector<std::string> default_dry_breakers();

/// Every token sequence that holds or completes one of the texts: tokens that contain it alone, and tokens that end with its start,
/// followed by the tokens of the rest. For SamplerSettings::dry_breakers. Looks at the whole vocabulary once.
/// Throws Error(kBadRequest) for an empty text or one above 256 bytes.
[[nodiscard]] std::vector<std::vector<Token>> dry_breaker_sequences(const Tokenizer& tokenizer, std::span<const std::string> texts);

/// The sequences of one tokenizer, which remembers those of the texts that were asked for last: requests mostly ask for the same.
/// Any thread may call.
class DryBreakers {
 public:
  explicit DryBreakers(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  /// As dry_breaker_sequences.
  [[nodiscard]] std::vector<std::vector<Token>> sequences(std::span<const std::string> texts);

 private:
  const Tokenizer& tokenizer_;
  std::mutex mutex_;
  std::vector<std::string> texts_;
  std::vector<std::vector<Token>> sequences_;  ///< of texts_
};

}  // namespace quench
