#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generation.h"
#include "sample/settings.h"
#include "text/chat_template.h"

namespace quench {

/// One line of a batch file: a JSON object with a prompt, or messages, and what differs from the command's own settings.
///
///   {"id": a text or number, "prompt": "text" | "messages": [{"role": "user", "content": "..."}, ...],
///    "max_tokens": 100, "stop": "text" | ["text", ...],
///    "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "frequency_penalty", "presence_penalty", "seed"}
struct BatchRequest {
  std::string id_json = "null";  ///< as it was given, for the result
  std::optional<std::string> prompt;
  std::vector<ChatMessage> messages;  ///< when there is no prompt
  std::optional<std::size_t> max_tokens;
  std::vector<std::string> stop_texts;
  SamplerSettings sampler;
};

/// Throws Error(kBadRequest) naming the key that is missing, unknown, of the wrong type or out of range. Nothing is ignored.
[[nodiscard]] BatchRequest read_batch_request(std::string_view line, const SamplerSettings& defaults);

/// What says which request a line of results belongs to.
struct BatchResultKey {
  std::uint64_t line = 0;  ///< of the input, from 1
  std::uint64_t input_hash = 0;

  bool operator==(const BatchResultKey&) const = default;
};

/// Of the text of an input line.
[[nodiscard]] std::uint64_t batch_input_hash(std::string_view line) noexcept;

/// {"line", "input", "id", "text", "finish", "prompt_tokens", "cached_tokens", "generated_tokens"}, with a line feed. Bytes that are no
/// UTF-8 become U+FFFD.
[[nodiscard]] std::string write_batch_result(const BatchResultKey& key, const std::string& id_json, const GenerationResult& result);
/// {"line", "input", "id", "error"}
[[nodiscard]] std::string write_batch_error(const BatchResultKey& key, const std::string& id_json, std::string_view message);
/// The key of a line of results. Throws Error(kBadFile) when it is none.
[[nodiscard]] BatchResultKey read_batch_result_key(std::string_view line);

}  // namespace quench
