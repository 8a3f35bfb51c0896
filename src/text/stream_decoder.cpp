#include "text/stream_decoder.h"

#include <cstddef>
#include <string_view>

namespace quench {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The start of `text` as UTF-8: how many bytes belong together, and whether they are a character, the start of one, or neither.
struct Sequence {
  enum class Kind { kComplete, kIncomplete, kMalformed };
  std::size_t bytes;
  Kind kind;
};

/// Table 3-7 of the Unicode standard: the second byte's range depends on the first.
Sequence sequence_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, Sequence::Kind::kComplete};
  if (lead < 0xC2 || lead > 0xF4) return {1, Sequence::Kind::kMalformed};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, Sequence::Kind::kIncomplete};
    if (byte(i) < (i == 1 ? low : 0x80) || byte(i) > (i == 1 ? high : 0xBF)) return {i, Sequence::Kind::kMalformed};
  }
  return {length, Sequence::Kind::kComplete};
}

}  // namespace

std::string StreamDecoder::push(Token token) {
  pending_ += tokenizer_.token_bytes(token, with_specials_);
  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Sequence sequence = sequence_at(rest);
    if (sequence.kind == Sequence::Kind::kIncomplete) break;
    text += sequence.kind == Sequence::Kind::kComplete ? rest.substr(0, sequence.bytes) : kReplacement;
    rest.remove_prefix(sequence.bytes);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return text;
}

std::string StreamDecoder::flush() {
  const bool incomplete = !pending_.empty();
  pending_.clear();
  return std::string(incomplete ? kReplacement : "");
}

}  // namespace quench
