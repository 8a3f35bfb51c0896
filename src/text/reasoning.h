#pragma once

#include <string>
#include <string_view>

namespace quench {

/// An answer without its reasoning, as Qwen3's template leaves it out of the history: what follows the last `</think>`, without leading
/// line feeds. Reasoning that was cut off before its end is left out whole. Any other text stays as it is.
[[nodiscard]] std::string_view without_reasoning(std::string_view answer);

/// The same, but only when the answer starts with `<think>`, and up to the first `</think>`: for families that do not reserve the
/// markers.
[[nodiscard]] std::string_view without_leading_reasoning(std::string_view answer);

/// Gemma 4: without every `<|channel>...<channel|>`. A channel that was cut off goes up to the end.
[[nodiscard]] std::string without_thought_channels(std::string_view answer);

}  // namespace quench
