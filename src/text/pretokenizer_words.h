#pragma once

#include <cstddef>
#include <cstdint>

#include "text/pretokenizer_scan.h"

namespace quench {

/// Where 's 't 're 've 'm 'll 'd are cut off.
enum class Contraction : std::uint8_t {
  kNone,
  kLower,      ///< a piece of their own, lower case only
  kAnyCase,    ///< a piece of their own; ASCII case only: U+017F is no s
  kAfterWord,  ///< in any case, and part of the word before them
};

/// What a word is made of.
enum class WordForm : std::uint8_t {
  kRun,     ///< a run of `letters`
  kCased,   ///< as kRun, and an ASCII capital ends it where a lower-case or non-ASCII letter came before
  kPhrase,  ///< letters, each with its marks, and single spaces between two of them
  kNotHan,  ///< as kRun, without Han, whose runs are pieces of their own
};

/// What a run of other characters takes along.
enum class Tail : std::uint8_t { kNone, kNewlines, kNewlinesAndSlashes, kOneNewlineOrSlash };

/// How white space that holds newlines is cut.
enum class Newlines : std::uint8_t {
  kLikeBlanks,  ///< no rule of their own
  kUpToLast,    ///< a piece ends at the last newline of the white space
  kSingle,      ///< a newline at the start of the white space is a piece
};

/// One alternation of the split expressions, in the order of their alternatives:
/// contraction | word | number | other | newlines | white space but its last character | white space.
struct WordRules {
  static constexpr std::size_t kAnyNumber = ~std::size_t{0};

  Contraction contraction = Contraction::kAnyCase;
  bool sign_and_ascii_word = false;  ///< before all else: one ASCII sign and the ASCII letters after it
  WordForm word = WordForm::kRun;
  CharSet letters = kLetter;
  /// What may stand before a word, once. 0: a plain space, before words and numbers.
  CharSet prefix = static_cast<CharSet>(~(kNewline | kLetter | kNumber));
  std::size_t numbers = 1;  ///< how many \p{N} make a piece; 0: no rule for them
  /// What the runs of other characters are made of; a plain space may stand before them.
  CharSet other = static_cast<CharSet>(~(kSpace | kLetter | kNumber));
  Tail tail = Tail::kNewlines;
  Newlines newlines = Newlines::kUpToLast;
  bool halving_blanks = false;  ///< white space goes in pieces of 512, 256, ... 4, then 2 or 1
};

/// The pass for one such alternation. Characters that no alternative matches are collected into pieces of their own.
template <WordRules rules>
class Words {
 public:
  explicit Words(ScanText text) : text_(text) {}

  template <class Emit>
  void run(std::size_t begin, Emit&& emit) {
    std::size_t gap = begin;
    for (std::size_t pos = begin; pos < text_.end;) {
      const CodePoint c = text_.at(pos);
      const std::size_t match_end = match(pos, c);
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
  static constexpr bool kSpaceBeforeNumber = rules.prefix == 0;

  /// The end of the match at `pos`, where `c` stands; `pos` when no alternative matches.
  std::size_t match(std::size_t pos, CodePoint c) noexcept {
    if constexpr (rules.contraction == Contraction::kLower || rules.contraction == Contraction::kAnyCase) {
      if (const std::size_t bytes = contraction_bytes(pos)) return pos + bytes;
    }
    if constexpr (rules.sign_and_ascii_word) {
      if (is_ascii_graphic_sign(c.value) && is_ascii_letter(text_.byte(pos + 1))) return ascii_word_end(pos + 1);
    }
    if constexpr (rules.word == WordForm::kNotHan) {
      if (is_han(c.value)) return han_end(pos, c);
    }
    if (starts_word(c)) return word_end(pos);

    const std::size_t next_pos = pos + c.bytes;
    const CodePoint next = text_.at(next_pos);
    if ((rules.prefix ? (c.set & rules.prefix) != 0 : c.value == ' ') && starts_word(next)) return word_end(next_pos);
    if (rules.numbers && (c.set & kNumber)) return numbers_end(pos);
    if (kSpaceBeforeNumber && c.value == ' ' && (next.set & kNumber)) return numbers_end(next_pos);
    if (c.set & rules.other) return other_end(pos);
    if (c.value == ' ' && (next.set & rules.other)) return other_end(next_pos);
    return (c.set & kSpace) ? space_end(pos) : pos;
  }

  // --- words -------------------------------------------------------------------------------------------------------------------------

  [[nodiscard]] static bool starts_word(CodePoint c) noexcept {
    if constexpr (rules.word == WordForm::kNotHan) {
      return (c.set & rules.letters) && !is_han(c.value);
    } else if constexpr (rules.word == WordForm::kPhrase) {
      return c.set & kLetter;
    } else {
      return c.set & rules.letters;
    }
  }

  [[nodiscard]] std::size_t word_end(std::size_t pos) const noexcept {
    if constexpr (rules.word == WordForm::kCased) {
      pos = cased_end(pos);
    } else if constexpr (rules.word == WordForm::kPhrase) {
      pos = phrase_end(pos);
    } else if constexpr (rules.word == WordForm::kNotHan) {
      for (CodePoint c = text_.at(pos); starts_word(c); c = text_.at(pos)) pos += c.bytes;
    } else {
      pos = text_.template skip<rules.letters>(pos);
    }
    return rules.contraction == Contraction::kAfterWord ? pos + contraction_bytes(pos) : pos;
  }

  /// The expressions are [^a-z]*[^A-Z]+ | [^a-z]+[^A-Z]* over letters: a letter beyond ASCII is in both sets. So capitals go with the
  /// small letters after them; without these, the word ends behind its last letter beyond ASCII; and without these, too, it is all
  /// capitals.
  [[nodiscard]] std::size_t cased_end(std::size_t pos) const noexcept {
    std::size_t beyond_ascii_end = 0;
    CodePoint c = text_.at(pos);
    for (; (c.set & rules.letters) && !is_ascii_lower(c.value); c = text_.at(pos)) {
      pos += c.bytes;
      if (c.bytes > 1) beyond_ascii_end = pos;
    }
    if (is_ascii_lower(c.value)) {
      do {
        pos = text_.skip_lower(pos + c.bytes);
        c = text_.at(pos);
      } while ((c.set & rules.letters) && !is_ascii_upper(c.value));
      return pos;
    }
    return beyond_ascii_end ? beyond_ascii_end : pos;
  }

  [[nodiscard]] std::size_t phrase_end(std::size_t pos) const noexcept {
    while (true) {
      pos = text_.skip < kLetter | kMark > (pos);
      if (text_.byte(pos) != ' ' || !(text_.at(pos + 1).set & kLetter)) return pos;
      ++pos;
    }
  }

  [[nodiscard]] std::size_t ascii_word_end(std::size_t pos) const noexcept {
    while (is_ascii_letter(text_.byte(pos))) ++pos;
    return pos;
  }

  /// The blocks that llama.cpp counts as Han: ideographs and compatibility ideographs, assigned or not; extensions up to F.
  [[nodiscard]] static bool is_han(char32_t c) noexcept {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2EBEF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
  }

  [[nodiscard]] std::size_t han_end(std::size_t pos, CodePoint c) const noexcept {
    for (; is_han(c.value); c = text_.at(pos)) pos += c.bytes;
    return pos;
  }

  /// The length of the contraction at `pos`, apostrophe included; 0 when there is none.
  [[nodiscard]] std::size_t contraction_bytes(std::size_t pos) const noexcept {
    if (text_.byte(pos) != '\'') return 0;
    constexpr unsigned kFold = rules.contraction == Contraction::kLower ? 0 : 'a' - 'A';
    const unsigned first = text_.byte(pos + 1) | kFold;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    const unsigned second = text_.byte(pos + 2) | kFold;
    if (second == 'e' && (first == 'r' || first == 'v')) return 3;
    return second == 'l' && first == 'l' ? 3 : 0;
  }

  // --- numbers, other characters, white space -------------------------------------------------------------------------------------------

  [[nodiscard]] std::size_t numbers_end(std::size_t pos) const noexcept {
    if constexpr (rules.numbers == WordRules::kAnyNumber) return text_.skip<kNumber>(pos);
    CodePoint c = text_.at(pos);
    for (std::size_t i = 0; i < rules.numbers && (c.set & kNumber); ++i) {
      pos += c.bytes;
      c = text_.at(pos);
    }
    return pos;
  }

  [[nodiscard]] std::size_t other_end(std::size_t pos) const noexcept {
    pos = text_.template skip<rules.other>(pos);
    const auto is_newline = [this](std::size_t at) { return text_.byte(at) == '\n' || text_.byte(at) == '\r'; };
    if constexpr (rules.tail == Tail::kNewlines) {
      while (is_newline(pos)) ++pos;
    } else if constexpr (rules.tail == Tail::kNewlinesAndSlashes) {
      while (is_newline(pos) || text_.byte(pos) == '/') ++pos;
    } else if constexpr (rules.tail == Tail::kOneNewlineOrSlash) {
      if (is_newline(pos) || text_.byte(pos) == '/') ++pos;
    }
    return pos;
  }

  [[nodiscard]] std::size_t space_end(std::size_t pos) noexcept {
    if constexpr (rules.newlines == Newlines::kSingle) {
      if (text_.at(pos).set & kNewline) return pos + 1;
    }
    if constexpr (rules.halving_blanks) {
      if (pos < no_newline_before_) return halving_end(pos);
    }
    std::size_t newline_end = 0, last = pos, run_end = pos;
    for (CodePoint c = text_.at(pos); c.set & kSpace; c = text_.at(run_end)) {
      last = run_end;
      run_end += c.bytes;
      if (c.set & kNewline) newline_end = run_end;
    }
    if (rules.newlines == Newlines::kUpToLast && newline_end) return newline_end;
    if constexpr (rules.halving_blanks) {
      no_newline_before_ = run_end;
      return halving_end(pos);
    }
    return run_end < text_.end && last > pos ? last : run_end;
  }

  /// The largest of 512, 256, ... 4 characters, else 2, else 1, after which there is more white space or the end.
  [[nodiscard]] std::size_t halving_end(std::size_t pos) const noexcept {
    constexpr std::size_t kMost = 512;
    std::size_t ends[kMost + 1] = {pos};
    std::size_t length = 0;
    CodePoint c = text_.at(pos);
    while (length < kMost && (c.set & kSpace)) {
      pos += c.bytes;
      ends[++length] = pos;
      c = text_.at(pos);
    }
    const bool more = c.set == 0 || (c.set & kSpace);
    const std::size_t usable = more ? length : length - 1;
    for (std::size_t size = kMost; size > 1; size /= 2) {
      if (size <= usable) return ends[size];
    }
    return ends[1];
  }

  ScanText text_;
  std::size_t no_newline_before_ = 0;  ///< white space from here back is known to hold no newline
};

}  // namespace quench
