#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/unicode.h"

namespace quench {

/// The text that a pass of the pre-tokenizer cuts: the piece that the pass before it left, which nothing looks beyond.
class ScanText {
 public:
  ScanText(const unsigned char* text, std::size_t text_end) : bytes(text), end(text_end) {}
  const unsigned char* bytes;
  std::size_t end;  ///< the offset where the piece ends; it begins where a pass is told to

  [[nodiscard, gnu::always_inline]] CodePoint at(std::size_t pos) const noexcept { return decode_at(bytes, pos, end); }
  /// Like at(), where all that matters is the byte; 0 past the end.
  [[nodiscard]] unsigned char byte(std::size_t pos) const noexcept { return pos < end ? bytes[pos] : 0; }
  /// The end of the longest run from `pos` whose classes are all in `set`.
  template <CharSet set>
  [[nodiscard]] std::size_t skip(std::size_t pos) const noexcept {
    constexpr bool kAsciiLettersOnly = (set & kLetter) && !(set & ~(kLetter | kMark));
    while (pos < end) {
      if constexpr (kAsciiLettersOnly) pos = skip_letters(pos);
      const CodePoint c = at(pos);
      if (!(c.set & set)) return pos;
      pos += c.bytes;
    }
    return pos;
  }
  /// Skips ASCII letters eight bytes at a time: no branch whose outcome is the length of the word.
  [[nodiscard]] std::size_t skip_letters(std::size_t pos) const noexcept {
    constexpr std::uint64_t kFold = kEveryByte * 0x20;
    return skip_ascii_range(pos, kFold);
  }
  [[nodiscard]] std::size_t skip_lower(std::size_t pos) const noexcept { return skip_ascii_range(pos, 0); }

 private:
  static constexpr std::uint64_t kEveryByte = 0x0101010101010101;

  /// Skips bytes in a to z, after `fold` is set in them; may stop early, near the end.
  [[nodiscard]] std::size_t skip_ascii_range(std::size_t pos, std::uint64_t fold) const noexcept {
    static_assert(std::endian::native == std::endian::little, "the lowest byte of a word is the first");
    while (pos + 8 <= end) {
      std::uint64_t word;
      std::memcpy(&word, bytes + pos, 8);
      // With the top bits off, adding 0x80 - 'a' sets a byte's top bit from 'a' on, and 0x7F - 'z' from past 'z' on: no carry.
      const std::uint64_t low = (word | fold) & kEveryByte * 0x7F;
      const std::uint64_t inside = (low + kEveryByte * (0x80 - 'a')) & ~(low + kEveryByte * (0x7F - 'z')) & ~word & kEveryByte * 0x80;
      const std::uint64_t outside = inside ^ kEveryByte * 0x80;
      if (outside) return pos + static_cast<std::size_t>(std::countr_zero(outside)) / 8;
      pos += 8;
    }
    return pos;
  }
};

/// Applies one pass after the other, each to the pieces of the one before: what llama.cpp does with a list of expressions. A pass is
/// constructed with its text and run once: `run(begin, emit)` calls `emit(begin, end)` for consecutive pieces that cover it. Each pass is
/// linear in its piece, so the chain is linear.
template <class Pass, class... Rest>
struct Passes {
  template <class Emit>
  static void run(ScanText text, std::size_t begin, Emit&& emit) {
    if constexpr (sizeof...(Rest) == 0) {
      Pass(text).run(begin, emit);
    } else {
      Pass(text).run(begin, [&](std::size_t from, std::size_t to) { Passes<Rest...>::run({text.bytes, to}, from, emit); });
    }
  }
};

[[nodiscard]] constexpr bool is_ascii_digit(char32_t c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_ascii_upper(char32_t c) noexcept { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr bool is_ascii_lower(char32_t c) noexcept { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr bool is_ascii_letter(char32_t c) noexcept { return is_ascii_upper(c) || is_ascii_lower(c); }
/// ASCII punctuation and symbols: what is printed and is neither letter, digit nor space.
[[nodiscard]] constexpr bool is_ascii_graphic_sign(char32_t c) noexcept {
  return c > ' ' && c < 0x7F && !is_ascii_letter(c) && !is_ascii_digit(c);
}

}  // namespace quench
