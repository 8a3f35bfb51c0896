#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>

#include "text/pretokenizer_scan.h"

namespace quench {

/// A pass that makes every match of `Matcher` a piece, and what lies between two matches one piece, too. Matches are tried from left to
/// right and do not overlap. `Matcher::match(text, pos, c)`, c = text.at(pos), returns the end of the match at `pos`, or `pos`;
/// `Matcher::may_start(c)` is false where no match can begin.
template <class Matcher>
class Isolate {
 public:
  explicit Isolate(ScanText text) : text_(text) {}

  template <class Emit>
  void run(std::size_t begin, Emit&& emit) const {
    std::size_t gap = begin;
    for (std::size_t pos = begin; pos < text_.end;) {
      if (kNeverStarts[text_.bytes[pos]]) {
        ++pos;
        continue;
      }
      const CodePoint c = text_.at(pos);
      const std::size_t match_end = Matcher::match(text_, pos, c);
      if (match_end == pos) {
        pos += c.bytes;
        continue;
      }
      if (gap < pos) emit(gap, pos);
      emit(pos, match_end);
      gap = pos = match_end;
    }
    if (gap < text_.end) emit(gap, text_.end);
  }

 private:
  /// The ASCII characters to pass over without a closer look.
  static constexpr auto kNeverStarts = [] {
    std::array<bool, 256> table{};
    for (char32_t c = 0; c < 0x80; ++c) table[c] = !Matcher::may_start({c, 1, class_of(c)});
    return table;
  }();
  ScanText text_;
};

// --- which code points a run is made of -------------------------------------------------------------------------------------------

/// A few ASCII characters, as a template argument.
template <std::size_t N>
struct AsciiList {
  std::array<char, N> chars{};
  consteval AsciiList(const char (&text)[N]) { std::copy_n(text, N, chars.begin()); }
  [[nodiscard]] constexpr bool holds(char32_t c) const noexcept {
    return c < 0x80 && std::any_of(chars.begin(), chars.end() - 1, [c](char each) { return static_cast<char32_t>(each) == c; });
  }
};

/// The classes in `set`, and these ASCII characters.
template <CharSet set, AsciiList also = "">
struct ClassOr {
  static constexpr bool test(CodePoint c) noexcept { return (c.set & set) || also.holds(c.value); }
};

struct AsciiDigit {
  static constexpr bool test(CodePoint c) noexcept { return is_ascii_digit(c.value); }
};

struct LineFeed {
  static constexpr bool test(CodePoint c) noexcept { return c.value == '\n'; }
};

/// \p{P} and all ASCII signs.
struct PunctuationOrAsciiSign {
  static constexpr bool test(CodePoint c) noexcept { return (c.set & kPunctuation) || is_ascii_graphic_sign(c.value); }
};

struct CodeRange {
  char32_t first, last;
};

/// Code points in a sorted list of ranges. White space beyond ASCII is in none: llama.cpp turns it into a vertical tab before it matches
/// expressions that are made of ranges.
template <const auto& ranges>
struct InRanges {
  static constexpr bool test(CodePoint c) noexcept { return c.value < 0x80 ? kAscii[c.value] : !(c.set & kBlank) && find(c.value); }

 private:
  static constexpr bool find(char32_t value) noexcept {
    const auto range = std::lower_bound(std::begin(ranges), std::end(ranges), value, [](CodeRange r, char32_t v) { return r.last < v; });
    return range != std::end(ranges) && range->first <= value;
  }
  static constexpr auto kAscii = [] {
    std::array<bool, 0x80> table{};
    for (char32_t c = 0; c < 0x80; ++c) table[c] = find(c);
    return table;
  }();
};

/// Neither white space nor in a sorted list of ranges.
template <const auto& ranges>
struct NotSpaceNorIn {
  static constexpr bool test(CodePoint c) noexcept { return c.bytes && !(c.set & kSpace) && !InRanges<ranges>::test(c); }
};

// --- what a match is ----------------------------------------------------------------------------------------------------------------

/// What may stand before a run, once.
enum class Lead { kNothing, kPlainSpace, kAnySpace };

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// `least` to `most` code points of `Member`, after an optional lead.
template <class Member, std::size_t least = 1, std::size_t most = kNoLimit, Lead lead = Lead::kNothing>
struct Run {
  static_assert(least == 1 || lead == Lead::kNothing);
  static constexpr bool may_start(CodePoint c) noexcept { return is_lead(c) || Member::test(c); }
  static std::size_t match(ScanText text, std::size_t pos, CodePoint c) noexcept {
    if (is_lead(c)) {
      const CodePoint next = text.at(pos + c.bytes);
      return Member::test(next) ? run_end(text, pos + c.bytes, next) : pos;
    }
    return Member::test(c) ? run_end(text, pos, c) : pos;
  }

 private:
  static constexpr bool is_lead(CodePoint c) noexcept {
    return lead == Lead::kPlainSpace ? c.value == ' ' : lead == Lead::kAnySpace && (c.set & kSpace);
  }
  static std::size_t run_end(ScanText text, std::size_t pos, CodePoint c) noexcept {
    const std::size_t begin = pos;
    std::size_t length = 0;
    while (length < most && Member::test(c)) {
      ++length;
      pos += c.bytes;
      c = text.at(pos);
    }
    return length < least ? begin : pos;
  }
};

/// The first of several matchers that matches.
template <class... Matchers>
struct FirstOf {
  static constexpr bool may_start(CodePoint c) noexcept { return (Matchers::may_start(c) || ...); }
  static std::size_t match(ScanText text, std::size_t pos, CodePoint c) noexcept {
    std::size_t match_end = pos;
    static_cast<void>((((match_end = Matchers::match(text, pos, c)) != pos) || ...));
    return match_end;
  }
};

// --- passes that have to look ahead ---------------------------------------------------------------------------------------------------

/// Makes the white space at the very end of the piece a piece.
class IsolateTrailingSpace {
 public:
  explicit IsolateTrailingSpace(ScanText text) : text_(text) {}

  template <class Emit>
  void run(std::size_t begin, Emit&& emit) const {
    std::size_t space = begin, space_end = begin;
    while (space_end < text_.end) {
      space = text_.skip<kNotSpace>(space_end);
      space_end = text_.skip<kSpace>(space);
    }
    if (begin < space) emit(begin, space);
    if (space < text_.end) emit(space, text_.end);
  }

 private:
  ScanText text_;
};

/// Cuts a run of \p{N} so that all its groups but the first have three digits. What stands before the run stays with the first group
/// (llama.cpp's own handling of the afmoe and tiny_aya digit expressions).
class DigitGroupsAfterText {
 public:
  explicit DigitGroupsAfterText(ScanText text) : text_(text) {}

  template <class Emit>
  void run(std::size_t begin, Emit&& emit) const {
    std::size_t piece = begin;
    for (std::size_t pos = begin; pos < text_.end;) {
      pos = text_.skip<kNotNumber>(pos);
      for (std::size_t left = digits_from(pos); left > 0; --left) {
        pos += text_.at(pos).bytes;
        if ((left - 1) % 3 != 0) continue;
        emit(piece, pos);
        piece = pos;
      }
    }
    if (piece < text_.end) emit(piece, text_.end);
  }

 private:
  [[nodiscard]] std::size_t digits_from(std::size_t pos) const noexcept {
    std::size_t digits = 0;
    for (CodePoint c = text_.at(pos); c.set & kNumber; c = text_.at(pos)) {
      ++digits;
      pos += c.bytes;
    }
    return digits;
  }
  ScanText text_;
};

/// Cuts before every ASCII digit that has a multiple of three digits to the end of its run, itself included.
class AsciiDigitGroups {
 public:
  explicit AsciiDigitGroups(ScanText text) : text_(text) {}

  template <class Emit>
  void run(std::size_t begin, Emit&& emit) const {
    std::size_t piece = begin;
    for (std::size_t pos = begin; pos < text_.end;) {
      if (!is_ascii_digit(text_.bytes[pos])) {
        ++pos;
        continue;
      }
      const std::size_t run_end = digit_run_end(pos);
      for (; pos < run_end; ++pos) {
        if ((run_end - pos) % 3 != 0 || pos == piece) continue;
        emit(piece, pos);
        piece = pos;
      }
    }
    if (piece < text_.end) emit(piece, text_.end);
  }

 private:
  [[nodiscard]] std::size_t digit_run_end(std::size_t pos) const noexcept {
    while (pos < text_.end && is_ascii_digit(text_.bytes[pos])) ++pos;
    return pos;
  }
  ScanText text_;
};

}  // namespace quench
