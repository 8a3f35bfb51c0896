#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer_vocab.h"

namespace quench {

/// Where text may be cut without changing how it merges.
///
/// Every merge produces one of a fixed set of texts (the products). A merge that joined symbols across the boundary between characters
/// A and B would produce a text that holds A's last byte followed by B's first. So where no product does, nothing is ever joined across
/// that boundary, whatever comes before and after; and since the order of merges on one side cannot influence the other, merging both
/// sides apart gives the same symbols as merging them together. For words in an alphabet that hardly ever happens inside a word; in
/// Chinese, and between words of SentencePiece text, it happens almost everywhere.
class SafeCuts {
 public:
  SafeCuts() : partial_(kPartialWords), pairs_(kPairWords) {}

  /// Declares that merges may produce `product`.
  void add(std::string_view product);

  /// The first safe cut in `text` after `from`, or its end. `from` is the start of a character.
  [[nodiscard]] std::size_t next(std::string_view text, std::size_t from) const noexcept {
    Character left = character_at(text, from);
    std::size_t at = from + left.bytes;
    while (at < text.size()) {
      const Character right = character_at(text, at);
      if (!joins(left, right)) return at;
      at += right.bytes;
      left = right;
    }
    return text.size();
  }

 private:
  /// `packed` is the bytes, first byte lowest; 0 marks a byte that is no character, beside which there is no cut.
  struct Character {
    std::uint32_t packed;
    std::uint32_t bytes;
  };

  static Character character_at(std::string_view text, std::size_t at) noexcept {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) return {first | kPresent, 1};
    const std::size_t bytes = character_bytes(text.data() + at, text.size() - at);
    if (bytes == 1) return {0, 1};
    return {static_cast<std::uint32_t>(load_prefix(text.data() + at, bytes)), static_cast<std::uint32_t>(bytes)};
  }

  [[nodiscard]] bool joins(Character left, Character right) const noexcept {
    if (left.bytes == 1 && right.bytes == 1 && left.packed != 0 && right.packed != 0) {
      const std::size_t bit = ((left.packed & 0x7Fu) << 7) | (right.packed & 0x7Fu);
      return ((ascii_[bit / 64] >> (bit % 64)) & 1u) != 0;
    }
    if (left.packed == 0 || right.packed == 0) return true;
    const std::size_t edge = partial_bit(left.packed >> (8 * (left.bytes - 1)), right.packed);
    if (((partial_[edge / 64] >> (edge % 64)) & 1u) != 0) return true;
    const std::size_t pair = pair_bit(left.packed, right.packed);
    return ((pairs_[pair / 64] >> (pair % 64)) & 1u) != 0;
  }

  static std::size_t partial_bit(std::uint32_t last_byte, std::uint32_t first_byte) noexcept {
    return ((last_byte & 0xFFu) << 8) | (first_byte & 0xFFu);
  }
  static std::size_t pair_bit(std::uint32_t left, std::uint32_t right) noexcept {
    return static_cast<std::size_t>(hash_mix((static_cast<std::uint64_t>(left) << 32) | right, kHashSeed1)) % kPairBits;
  }

  // A bit above the byte keeps U+0000 apart from "no character".
  static constexpr std::uint32_t kPresent = 0x100;
  static constexpr std::size_t kPartialWords = 65536 / 64;
  // Hashed: a false "joins" costs a longer piece, never a wrong one. 262,144 entries hold about 300,000 distinct pairs of characters
  // outside ASCII: 7 % of 2^22 bits.
  static constexpr std::size_t kPairBits = std::size_t{1} << 22;
  static constexpr std::size_t kPairWords = kPairBits / 64;

  std::array<std::uint64_t, 128 * 128 / 64> ascii_{};
  std::vector<std::uint64_t> partial_;  ///< (last byte, first byte) where a product holds only part of a character beside the boundary
  std::vector<std::uint64_t> pairs_;
};

}  // namespace quench
