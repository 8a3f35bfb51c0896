#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "text/token.h"
#include "text/tokenizer_hash.h"

namespace quench {

/// The ids of pieces seen before: bounded, two-way set associative, the older of two gives way. Belongs to one encoding call at a time.
///
/// One entry is one cache line: 31 bytes of text and up to 7 ids hold 99 % of the words in running text. 32,768 entries are 2 MiB; the
/// hot part of them stays in L2, and a miss in L2 costs a tenth of merging the piece again.
class PieceCache {
 public:
  static constexpr std::size_t kMaxBytes = 31;
  static constexpr std::size_t kMaxTokens = 7;

  /// A piece as four words, its length in the last byte: equal keys are equal pieces.
  struct Key {
    std::array<std::uint64_t, 4> words{};

    // Spelled out: std::array's own comparison calls memcmp.
    friend bool operator==(const Key& a, const Key& b) noexcept {
      return ((a.words[0] ^ b.words[0]) | (a.words[1] ^ b.words[1]) | (a.words[2] ^ b.words[2]) | (a.words[3] ^ b.words[3])) == 0;
    }
    [[nodiscard]] std::size_t slot() const noexcept {
      const std::uint64_t low = hash_mix(words[0] ^ kHashSeed1, words[1] ^ kHashSeed2);
      const std::uint64_t high = hash_mix(words[2] ^ kHashSeed2, words[3] ^ kHashSeed1);
      return static_cast<std::size_t>((low ^ (high << 1)) >> 7) % kEntries;
    }
  };

  PieceCache() : entries_(kEntries) {}

  /// `piece` has 1 to kMaxBytes bytes, and `readable` bytes may be read from its start.
  [[nodiscard]] static Key key_of(std::string_view piece, std::size_t readable) noexcept {
    Key key;
    if (readable >= sizeof(Key)) {
      // No branch on the length: lengths of words are as random as words.
      std::memcpy(key.words.data(), piece.data(), sizeof(Key));
      for (std::size_t i = 0; i < 4; ++i) key.words[i] &= kMasks[piece.size()][i];
    } else {
      std::memcpy(key.words.data(), piece.data(), piece.size());
    }
    key.words[3] |= static_cast<std::uint64_t>(piece.size()) << 56;
    return key;
  }

  /// Appends the ids of the piece, if it is known.
  [[nodiscard]] bool append(const Key& key, std::vector<Token>& out) const {
    const std::size_t slot = key.slot();
    const Entry& entry = entries_[slot].key == key ? entries_[slot] : entries_[slot ^ 1];
    if (!(entry.key == key)) return false;
    if (entry.count == 1) {
      out.push_back(entry.tokens[0]);
    } else {
      out.insert(out.end(), entry.tokens.begin(), entry.tokens.begin() + entry.count);
    }
    return true;
  }

  void insert(const Key& key, std::span<const Token> tokens) noexcept {
    if (tokens.empty() || tokens.size() > kMaxTokens) return;
    const std::size_t slot = key.slot();
    entries_[slot ^ 1] = entries_[slot];
    entries_[slot].key = key;
    entries_[slot].count = static_cast<std::uint32_t>(tokens.size());
    std::copy(tokens.begin(), tokens.end(), entries_[slot].tokens.begin());
  }

 private:
  static constexpr std::size_t kEntries = 32768;

  /// By length: the bytes of a key that belong to the piece.
  static constexpr auto kMasks = [] {
    std::array<std::array<std::uint64_t, 4>, kMaxBytes + 1> masks{};
    for (std::size_t size = 0; size <= kMaxBytes; ++size) {
      for (std::size_t byte = 0; byte < size; ++byte) {
        // Byte order of memory, which both supported architectures have little-endian.
        masks[size][byte / 8] |= std::uint64_t{0xFF} << (8 * (byte % 8));
      }
    }
    return masks;
  }();

  struct alignas(64) Entry {
    Key key;  // length byte 0 in an empty entry: equal to no piece's
    std::array<Token, kMaxTokens> tokens{};
    std::uint32_t count = 0;
  };
  static_assert(sizeof(Entry) == 64);
  std::vector<Entry> entries_;
};

}  // namespace quench
