#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"

namespace quench {

/// Where a suffix of what was read occurred before.
struct SuffixMatch {
  std::size_t length = 0;  ///< tokens that agree; 0 = none
  std::size_t next = 0;    ///< index of the token that followed them then
};

/// All substrings of a token sequence, grown token by token: the smallest automaton that accepts its suffixes (Blumer et al. 1985), at most
/// 2n states and 3n transitions, about 100 bytes a token. Appending takes constant time on average. Answers "what followed, the last time
/// the text ended like this?" for the sequence itself and, through cursors, for texts beside it.
class SuffixAutomaton {
 public:
  /// tokens  room for that many without an allocation
  explicit SuffixAutomaton(std::size_t tokens = 0);

  /// Throws Error(kBadRequest) beyond 2^29 tokens.
  void append(Token token);
  void append(std::span<const Token> tokens) {
    for (const Token token : tokens) append(token);
  }
  [[nodiscard]] std::span<const Token> tokens() const noexcept { return tokens_; }

  /// The longest suffix of the sequence that also occurred before, and what followed it at the latest time that it was the longest.
  [[nodiscard]] SuffixMatch repeated_suffix() const noexcept { return repeated_; }

  /// The longest suffix of a text beside the sequence that occurs in it. Cursors stay valid while nothing is appended.
  struct Cursor {
    std::uint32_t state = 0;
    std::size_t length = 0;
  };
  void advance(Cursor& cursor, Token token) const noexcept;
  [[nodiscard]] SuffixMatch match(const Cursor& cursor) const noexcept;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  struct State {
    std::uint32_t length = 0;  ///< of its longest substring
    std::uint32_t link = kNone;
    std::uint32_t end = 0;  ///< index behind an occurrence
    std::uint32_t first_edge = kNone;
  };
  struct Edge {
    Token token;
    std::uint32_t from;
    std::uint32_t to;
    std::uint32_t next;  ///< of the same state
  };

  [[nodiscard]] std::uint32_t find_edge(std::uint32_t state, Token token) const noexcept;
  void add_edge(std::uint32_t state, Token token, std::uint32_t to);
  void rehash(std::size_t slots);
  [[nodiscard]] std::size_t slot_of(std::uint32_t state, Token token) const noexcept;
  [[nodiscard]] std::uint32_t split(std::uint32_t state, std::uint32_t target, Token token);

  std::vector<Token> tokens_;
  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> slots_;  ///< edges by (state, token): open addressing, a power of two, at most half full
  std::uint32_t last_ = 0;
  SuffixMatch repeated_;
};

}  // namespace quench
