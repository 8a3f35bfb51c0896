#pragma once

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

}  // namespace quench
