#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/unicode_tables.h"

namespace quench {

/// A set of character classes, one bit each; a code point has exactly one. The classes are the general categories of Unicode 15.1 as
/// split expressions see them, with white space (\s) taken out and CR and LF apart from the rest of it.
using CharSet = std::uint8_t;
inline constexpr CharSet kOther = 1 << 0;        ///< \p{C}: controls, formats, private use, unassigned; and undecodable bytes
inline constexpr CharSet kLetter = 1 << 1;       ///< \p{L}
inline constexpr CharSet kNumber = 1 << 2;       ///< \p{N}
inline constexpr CharSet kMark = 1 << 3;         ///< \p{M}
inline constexpr CharSet kPunctuation = 1 << 4;  ///< \p{P}
inline constexpr CharSet kSymbol = 1 << 5;       ///< \p{S}
inline constexpr CharSet kBlank = 1 << 6;        ///< \s but CR and LF
inline constexpr CharSet kNewline = 1 << 7;      ///< CR and LF
inline constexpr CharSet kSpace = kBlank | kNewline;
inline constexpr CharSet kNotSpace = 0xFF & ~kSpace;
inline constexpr CharSet kNotNumber = 0xFF & ~kNumber;

/// Stands for a byte that is no part of well-formed UTF-8.
inline constexpr char32_t kUndecodable = 0xFFFFFFFF;

/// A code point where it stands in a text.
struct CodePoint {
  char32_t value;
  std::uint8_t bytes;  ///< length in the text: 1 to 4; 0 past the end
  CharSet set;         ///< its class; no bit past the end
};

[[nodiscard]] constexpr CharSet class_of(char32_t code_point) noexcept {
  if (code_point > 0x10FFFF) return kOther;
  return kClassBlocks[kClassOfBlock[code_point >> 7]][code_point & 127];
}

/// Decodes the non-ASCII sequence at text[pos], pos < end. Well-formed as the Unicode standard has it (table 3-7): no overlong forms,
/// no surrogates. A byte that starts no such sequence is one kUndecodable of one byte.
[[nodiscard]] inline CodePoint decode_multibyte(const unsigned char* text, std::size_t pos, std::size_t end) noexcept {
  constexpr CodePoint kBad{kUndecodable, 1, kOther};
  const unsigned char* at = text + pos;
  const std::size_t left = end - pos;
  const char32_t lead = at[0];
  const auto continues = [at](std::size_t i) { return (at[i] & 0xC0) == 0x80; };
  if (lead < 0xE0) {
    if (lead < 0xC2 || left < 2 || !continues(1)) return kBad;
    const char32_t value = (lead & 0x1F) << 6 | (at[1] & 0x3Fu);
    return {value, 2, class_of(value)};
  }
  if (lead < 0xF0) {
    if (left < 3 || !continues(1) || !continues(2)) return kBad;
    const char32_t value = (lead & 0x0F) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
    if (value < 0x800 || (value >= 0xD800 && value <= 0xDFFF)) return kBad;
    return {value, 3, class_of(value)};
  }
  if (lead > 0xF4 || left < 4 || !continues(1) || !continues(2) || !continues(3)) return kBad;
  const char32_t value = (lead & 0x07) << 18 | (at[1] & 0x3Fu) << 12 | (at[2] & 0x3Fu) << 6 | (at[3] & 0x3Fu);
  if (value < 0x10000 || value > 0x10FFFF) return kBad;
  return {value, 4, class_of(value)};
}

/// The code point at text[pos]; at or past `end`, one with no class and no length.
[[nodiscard, gnu::always_inline]] inline CodePoint decode_at(const unsigned char* text, std::size_t pos, std::size_t end) noexcept {
  if (pos >= end) return {kUndecodable, 0, 0};
  const unsigned char byte = text[pos];
  if (byte < 0x80) return {byte, 1, kClassBlocks[0][byte]};
  return decode_multibyte(text, pos, end);
}

/// As decode_at, for text in a view.
[[nodiscard]] inline CodePoint decode_utf8(std::string_view text, std::size_t pos) noexcept {
  return decode_at(reinterpret_cast<const unsigned char*>(text.data()), pos, text.size());
}

/// Appends the UTF-8 form; `code_point` is at most U+10FFFF.
void append_utf8(char32_t code_point, std::string& out);

}  // namespace quench
