#pragma once

#include <string>

#include "text/tokenizer.h"

namespace quench {

/// Turns a stream of tokens into text that never ends inside a UTF-8 sequence: an incomplete tail is held until it is complete, and
/// flushed as U+FFFD at the end. Bytes that can never become valid come out as U+FFFD at once, one for each longest prefix of a valid
/// sequence (Unicode 15.1, section 3.9, "substitution of maximal subparts").
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool with_specials = false) : tokenizer_(tokenizer), with_specials_(with_specials) {}

  /// The text that this token completes; may be empty.
  [[nodiscard]] std::string push(Token token);
  /// What is left: U+FFFD for an incomplete tail, else nothing. The decoder is then as new.
  [[nodiscard]] std::string flush();

 private:
  const Tokenizer& tokenizer_;
  bool with_specials_;
  std::string pending_;  ///< at most three bytes: the start of a sequence
};

}  // namespace quench
