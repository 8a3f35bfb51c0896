#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/token.h"
#include "text/tokenizer_hash.h"

namespace quench {

/// No token: what a lookup gives when there is none.
constexpr Token kNoToken = 0xFFFFFFFFu;

/// Many short strings in one block of memory.
class TextArena {
 public:
  void reserve(std::size_t count, std::size_t bytes);
  void append(std::string_view text);
  [[nodiscard]] std::size_t size() const noexcept { return starts_.size() - 1; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    return {bytes_.data() + starts_[i], static_cast<std::size_t>(starts_[i + 1] - starts_[i])};
  }

 private:
  std::string bytes_;
  std::vector<std::uint64_t> starts_ = {0};
};

/// Text to its position in an arena; of equal texts, the first. Open addressing, at most half full. The arena outlives the index and
/// keeps its address.
class ArenaIndex {
 public:
  /// Indexes every text that is not empty.
  explicit ArenaIndex(const TextArena& arena);
  [[nodiscard]] Token find(std::string_view text) const noexcept {
    if (text.size() > longest_) return kNoToken;
    const std::uint64_t hash = hash_text(text);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t slot = hash & mask_;; slot = (slot + 1) & mask_) {
      if (slots_[slot].index == kNoToken) return kNoToken;
      if (slots_[slot].tag == tag && (*arena_)[slots_[slot].index] == text) return slots_[slot].index;
    }
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t index = kNoToken;
  };
  const TextArena* arena_;
  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::size_t longest_ = 0;
};

/// How the stored text of a vocabulary entry relates to the bytes that it stands for.
enum class TextForm {
  kByteAlphabet,  ///< one character per byte, in GPT-2's alphabet
  kEscapedSpaces  ///< UTF-8 with U+2581 for a space, and <0xXX> for single bytes
};

/// The vocabulary: texts as stored, the bytes they stand for, types. Immutable; found by stored text (of duplicates, the lowest id).
class Vocab {
 public:
  Vocab(const std::vector<std::string>& texts, std::vector<TokenType> types, TextForm form);
  Vocab(const Vocab&) = delete;
  Vocab& operator=(const Vocab&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return texts_.size(); }
  [[nodiscard]] std::string_view text(Token token) const noexcept { return texts_[token]; }
  [[nodiscard]] std::string_view bytes(Token token) const noexcept { return bytes_[token]; }
  [[nodiscard]] TokenType type(Token token) const noexcept { return types_[token]; }
  [[nodiscard]] Token find(std::string_view text) const noexcept { return index_.find(text); }

  /// Whether text from outside may become this token: control and unknown tokens come from special matching or from code only.
  [[nodiscard]] bool is_text(Token token) const noexcept {
    return types_[token] != TokenType::kControl && types_[token] != TokenType::kUnknown;
  }
  /// The entry for one byte: "<0x0A>" or, failing that, the byte itself (kEscapedSpaces); its character (kByteAlphabet). May be kNoToken.
  [[nodiscard]] Token byte_token(unsigned char byte) const noexcept { return byte_tokens_[byte]; }

 private:
  TextArena texts_;
  TextArena bytes_;
  std::vector<TokenType> types_;
  ArenaIndex index_;
  std::vector<Token> byte_tokens_;
};

/// The character that GPT-2's alphabet has for a byte, in UTF-8.
[[nodiscard]] std::string byte_character(unsigned char byte);
/// Appends the bytes that `text`, written in that alphabet, stands for. Characters outside the alphabet stand for themselves.
void append_alphabet_bytes(std::string_view text, std::string& out);
/// Appends `text` with U+2581 replaced by spaces.
void append_unescaped_spaces(std::string_view text, std::string& out);
[[nodiscard]] inline std::string unescape_spaces(std::string_view text) {
  std::string out;
  append_unescaped_spaces(text, out);
  return out;
}
/// The stored form of a single byte in SentencePiece vocabularies: <0x0A>.
[[nodiscard]] std::string byte_escape(unsigned char byte);

/// Length of the UTF-8 sequence at the start of `text` (not empty), judged by its shape: 1 for a byte that no well-formed shape holds.
[[nodiscard]] inline std::size_t character_bytes(const char* text, std::size_t size) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0xC2) return 1;
  if (lead < 0xE0) return size >= 2 && continues(1) ? 2 : 1;
  if (lead < 0xF0) return size >= 3 && continues(1) && continues(2) ? 3 : 1;
  if (lead < 0xF5) return size >= 4 && continues(1) && continues(2) && continues(3) ? 4 : 1;
  return 1;
}

}  // namespace quench
