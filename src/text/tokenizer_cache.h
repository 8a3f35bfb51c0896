#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "text/token.h"
#include "text/tokenizer_hash.h"

namespace quench {

/// The ids of pieces seen before: bounded, two-way set associative, the older of two gives way. Belongs to one encoding call at a time.
///
/// One entry is one cache line: 31 bytes of text and up to 7 ids hold 99 % of the words in the languages that a vocabulary was made for;
/// words of others are up to 23 ids, of which the last 16 are in a line apart. 32,768 entries are 2 MiB, and as much for the second
/// lines, of which only those in use take memory. The hot part stays in L2, and a miss in L2 costs a tenth of merging the piece again.
class PieceCache {
 public:
  static constexpr std::size_t kMaxBytes = 31;
  static constexpr std::size_t kNearTokens = 7;
  static constexpr std::size_t kFarTokens = 16;
  static constexpr std::size_t kMaxTokens = kNearTokens + kFarTokens;

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

  PieceCache() : entries_(kEntries), far_(std::make_unique_for_overwrite<FarTokens[]>(kEntries)) {}

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

  /// The key of a part of a piece between safe cuts. The two kinds must not meet in the cache: a whole piece may be a token by the rule
  /// of ignore_merges, a segment only by merging.
  [[nodiscard]] static Key segment_key_of(std::string_view segment, std::size_t readable) noexcept {
    Key key = key_of(segment, readable);
    key.words[3] |= std::uint64_t{0x80} << 56;
    return key;
  }

  /// Asks for the entry's memory: what the processor does meanwhile hides the wait.
  void prefetch(const Key& key) const noexcept { __builtin_prefetch(&entries_[key.slot()]); }

  /// Writes the ids of the piece, if it is known, and gives their number, else 0. Needs room for kMaxTokens, whatever their number: no
  /// branch on what is as random as text is.
  [[nodiscard]] std::size_t copy(const Key& key, Token* ids) const noexcept {
    std::size_t slot = key.slot();
    if (!(entries_[slot].key == key)) slot ^= 1;
    const Entry& entry = entries_[slot];
    if (!(entry.key == key)) return 0;
    std::memcpy(ids, entry.tokens.data(), sizeof(entry.tokens));
    if (entry.count > kNearTokens) std::memcpy(ids + kNearTokens, far_[slot].data(), sizeof(FarTokens));
    return entry.count;
  }

  /// Appends the ids of one piece; `make` appends those that the cache does not hold.
  template <typename Make>
  void append(const Key& key, std::vector<Token>& out, const Make& make) {
    std::array<Token, kMaxTokens> ids;
    const std::size_t old = out.size();
    if (const std::size_t known = copy(key, ids.data()); known != 0) {
      out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(known));
      return;
    }
    make();
    insert(key, std::span(out).subspan(old));
  }

  void insert(const Key& key, std::span<const Token> tokens) noexcept {
    if (tokens.empty() || tokens.size() > kMaxTokens) return;
    const std::size_t slot = key.slot();
    entries_[slot ^ 1] = entries_[slot];
    if (entries_[slot].count > kNearTokens) far_[slot ^ 1] = far_[slot];
    const auto near = tokens.first(std::min(tokens.size(), kNearTokens));
    entries_[slot].key = key;
    entries_[slot].count = static_cast<std::uint32_t>(tokens.size());
    std::copy(near.begin(), near.end(), entries_[slot].tokens.begin());
    std::copy(tokens.begin() + static_cast<std::ptrdiff_t>(near.size()), tokens.end(), far_[slot].begin());
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

  using FarTokens = std::array<Token, kFarTokens>;
  struct alignas(64) Entry {
    Key key;  // length byte 0 in an empty entry: equal to no piece's
    std::array<Token, kNearTokens> tokens{};
    std::uint32_t count = 0;
  };
  static_assert(sizeof(Entry) == 64);
  std::vector<Entry> entries_;
  std::unique_ptr<FarTokens[]> far_;  ///< by entry, the ids from the eighth on
};

}  // namespace quench
