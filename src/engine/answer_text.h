#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/token.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace quench {

/// The text of an answer, as its tokens come: never ends inside a UTF-8 sequence, and holds back what may become a stop text.
class AnswerText {
 public:
  /// The tokenizer outlives this. Throws Error(kBadRequest) for an empty stop text.
  AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stop_texts, bool with_specials)
      : decoder_(tokenizer, with_specials), stops_(std::move(stop_texts)) {}

  /// The text that this token lets out. After a stop text matched, nothing more.
  [[nodiscard]] std::string push(Token token) { return stops_.push(decoder_.push(token)); }
  /// What is still held, when the tokens end.
  [[nodiscard]] std::string finish() {
    if (matched_stop()) return {};
    std::string text = stops_.push(decoder_.flush());
    if (!matched_stop()) text += stops_.flush();
    return text;
  }
  /// Index of the stop text that matched.
  [[nodiscard]] std::optional<std::size_t> matched_stop() const noexcept { return stops_.matched(); }

 private:
  StreamDecoder decoder_;
  StopMatcher stops_;
};

}  // namespace quench
