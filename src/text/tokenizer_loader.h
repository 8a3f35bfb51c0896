#pragma once

#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace quench {

namespace gguf {
class Metadata;
}

/// The tokenizer.ggml.* keys as parts, with llama.cpp's defaults for each model kind and pre-tokenizer name. Throws Error(kBadFile)
/// naming the key that is missing, of the wrong type or contradictory; Error(kUnsupported) for a model kind that quench does not do.
[[nodiscard]] TokenizerParts tokenizer_parts_from(const gguf::Metadata& metadata, const TokenizerOptions& options);

/// Checks lengths, ids and scores against each other, gives every token a type, and applies what llama.cpp knows about tokens by their
/// text (markers that end a turn are control tokens). Throws as above.
void complete_parts(TokenizerParts& parts);

/// The ids that end a turn or the text, sorted. After complete_parts.
[[nodiscard]] std::vector<Token> end_tokens_of(const TokenizerParts& parts);

}  // namespace quench
