#pragma once

#include <cstdint>

#include "base/token.h"

namespace quench {

/// tokenizer.ggml.token_type values.
enum class TokenType : std::uint8_t { kUndefined = 0, kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

}  // namespace quench
