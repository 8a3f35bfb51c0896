#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
  /// For about so many products.
  explicit SafeCuts(std::size_t products)
      : partial_(kPartialWords), pairs_(pair_bits(products) / 64), pair_shift_(64 - std::countr_zero(pair_bits(products))) {}

  /// Declares that merges may produce `product`.
  void add(std::string_view product);

  /// The first safe cut in `text` after `from`, or its end. `from` is the start of a character.
  [[nodiscard]] std::size_t next(std::string_view text, std::size_t from) const noexcept {
    for (std::size_t at = from;;) {
      at = skip_ascii(text, at);
      Character left = character_at(text, at);
      do {
        at += left.bytes;
        if (at >= text.size()) return text.size();
        const Character right = character_at(text, at);
        if (!joins(left, right)) return at;
        left = right;
      } while (!left.is_ascii());
    }
  }

 private:
  /// `packed` is the bytes, first byte lowest; 0 marks a byte that is no character, beside which there is no cut.
  struct Character {
    std::uint32_t packed;
    std::uint32_t bytes;
    [[nodiscard]] bool is_ascii() const noexcept { return (packed & (kPresent | 0x80u)) == kPresent && bytes == 1; }
  };

  static Character character_at(std::string_view text, std::size_t at) noexcept {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) return {first | kPresent, 1};
    if (text.size() - at < 4) {
      const std::size_t bytes = character_bytes(text.data() + at, text.size() - at);
      return bytes == 1 ? Character{0, 1}
                        : Character{static_cast<std::uint32_t>(load_prefix(text.data() + at, bytes)), static_cast<std::uint32_t>(bytes)};
    }
    // The same without a branch on the length, which differs from character to character where scripts mix.
    std::uint32_t word = 0;
    std::memcpy(&word, text.data() + at, 4);
    const std::uint32_t bytes = kLengths[first];
    const std::uint32_t keep = ~std::uint32_t{0} >> (32 - 8 * bytes);
    const bool whole = bytes > 1 && (word & keep & 0xC0C0C000u) == (keep & 0x80808000u);
    return whole ? Character{word & keep, bytes} : Character{0, 1};
  }

  [[nodiscard]] bool joins(Character left, Character right) const noexcept {
    if (left.is_ascii() && right.is_ascii()) {
      return ascii_joins(left.packed & 0x7Fu, right.packed & 0x7Fu);
    }
    if (left.packed == 0 || right.packed == 0) return true;
    const std::size_t edge = partial_bit(left.packed >> (8 * (left.bytes - 1)), right.packed);
    if (((partial_[edge / 64] >> (edge % 64)) & 1u) != 0) return true;
    const std::size_t pair = pair_bit(left.packed, right.packed);
    return ((pairs_[pair / 64] >> (pair % 64)) & 1u) != 0;
  }

  /// The first character from `at` on that is not joined with the next one by ASCII alone: that is, which is not ASCII itself, stands
  /// before one that is not, is the last, or has a safe cut after it.
  [[nodiscard]] std::size_t skip_ascii(std::string_view text, std::size_t at) const noexcept {
    auto left = static_cast<unsigned char>(text[at]);
    while (left < 0x80 && at + 1 < text.size()) {
      const auto right = static_cast<unsigned char>(text[at + 1]);
      if (right >= 0x80 || !ascii_joins(left, right)) break;
      left = right;
      ++at;
    }
    return at;
  }
  [[nodiscard]] bool ascii_joins(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::size_t bit = (left << 7) | right;
    return ((ascii_[bit / 64] >> (bit % 64)) & 1u) != 0;
  }

  static std::size_t partial_bit(std::uint32_t last_byte, std::uint32_t first_byte) noexcept {
    return ((last_byte & 0xFFu) << 8) | (first_byte & 0xFFu);
  }
  [[nodiscard]] std::size_t pair_bit(std::uint32_t left, std::uint32_t right) const noexcept {
    return static_cast<std::size_t>(hash_mix((static_cast<std::uint64_t>(left) << 32) | right, kHashSeed1) >> pair_shift_);
  }

  /// By first byte: the length of the character that it may begin, by shape.
  static constexpr auto kLengths = [] {
    std::array<std::uint8_t, 256> lengths{};
    for (unsigned b = 0; b < 256; ++b) lengths[b] = b < 0xC2 || b >= 0xF5 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
    return lengths;
  }();

  // A bit above the byte keeps U+0000 apart from "no character".
  static constexpr std::uint32_t kPresent = 0x100;
  static constexpr std::size_t kPartialWords = 65536 / 64;
  // Hashed: a false "joins" costs a longer piece, never a wrong one. A product has about one new pair of characters outside ASCII at
  // most (262,144 entries hold 300,000), so 16 bits for each are 7 % full, and a small vocabulary's table stays near the core.
  static std::size_t pair_bits(std::size_t products) noexcept {
    return std::bit_ceil(std::clamp<std::size_t>(16 * products, std::size_t{1} << 12, std::size_t{1} << 26));
  }

  std::array<std::uint64_t, 128 * 128 / 64> ascii_{};
  std::vector<std::uint64_t> partial_;  ///< (last byte, first byte) where a product holds only part of a character beside the boundary
  std::vector<std::uint64_t> pairs_;
  int pair_shift_;
};

}  // namespace quench
