#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/token.h"
#include "text/tokenizer_vocab.h"

namespace quench {

/// A part of a text: one special token, or plain text (`token` is kNoToken).
struct Fragment {
  std::size_t begin = 0;
  std::size_t end = 0;
  Token token = kNoToken;
};

/// Bytes [begin, end) of a text in which control tokens are recognised.
struct TrustedRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A special token that swallows the whitespace before or after it.
struct SpecialStrip {
  Token token = kNoToken;
  bool left = false;
  bool right = false;
};

/// Finds special tokens in text, as llama.cpp does: the longest token first takes all its occurrences, left to right; then the next
/// looks at what is left. Control and unknown tokens count inside trusted ranges only; user-defined ones everywhere, because they are
/// part of how such a vocabulary writes plain text (runs of spaces or newlines, say).
class SpecialTokens {
 public:
  /// `strips` names the tokens that swallow whitespace beside them.
  SpecialTokens(const Vocab& vocab, std::span<const SpecialStrip> strips);

  /// Appends the fragments of `text`, in order. `trusted` is sorted and disjoint.
  void partition(std::string_view text, std::span<const TrustedRange> trusted, std::vector<Fragment>& out) const;

 private:
  struct Special {
    std::string_view text;
    Token token = kNoToken;
    std::uint32_t priority = 0;  ///< longest first, then lowest id
    bool always = false;         ///< user-defined
    bool strip_left = false;
    bool strip_right = false;
  };
  class Partition;

  /// The first position from `at` on where a special may stand, judged by its first two bytes.
  [[nodiscard]] std::size_t next_start(std::string_view text, std::size_t at) const noexcept {
    for (; at < text.size(); ++at) {
      const auto first = static_cast<unsigned char>(text[at]);
      if (!first_bytes_[first]) continue;
      const auto second = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0u;
      const std::size_t bit = (static_cast<std::size_t>(first) << 8) | second;
      if (((starts_[bit / 64] >> (bit % 64)) & 1u) != 0) break;
    }
    return at;
  }
  template <typename Visit>
  void for_each_at(std::string_view text, std::size_t at, const Visit& visit) const;

  std::vector<Special> sorted_;             ///< by text: a range of it with a common prefix is a node of the trie
  std::vector<std::uint32_t> by_priority_;  ///< indices into sorted_
  std::array<bool, 256> first_bytes_{};
  std::vector<std::uint64_t> starts_;  ///< 2^16 bits: first two bytes of some special
  bool strips_ = false;
};

}  // namespace quench
