#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/token.h"
#include "text/tokenizer_cuts.h"
#include "text/tokenizer_merge.h"
#include "text/tokenizer_vocab.h"

namespace quench {

/// Byte-pair merges over symbols. A symbol is a vocabulary entry (its id) or a text that merges mention and the vocabulary does not
/// (ids from the vocabulary's size on): merging works on texts, as in llama.cpp, and only at the end has each text to be a token.
/// What is no token then, falls back to the tokens of its bytes, and a byte without one to the unknown token.
class BpeRules {
 public:
  using Symbol = std::uint32_t;

  /// `merges`: "left right", best first; of a repeated pair the first counts. Throws Error(kBadFile) naming the key and the index for a
  /// merge that is not two texts, Error(kUnsupported) beyond 2^21 symbols or 2^22 merges.
  BpeRules(const Vocab& vocab, std::span<const std::string> merges, TextForm form, Token unknown);

  [[nodiscard]] std::uint32_t rank(Symbol left, Symbol right) const noexcept {
    if ((left | right) < kNearSymbols) return near_ranks_[left * kNearSymbols + right];
    const std::uint64_t pair = (static_cast<std::uint64_t>(left) << kSymbolBits) | right;
    for (std::size_t slot = slot_of(pair);; slot = (slot + 1) & mask_) {
      const std::uint64_t entry = slots_[slot];
      if (entry >> kRankBits == pair) return static_cast<std::uint32_t>(entry & kRankMask);
      if (entry == kEmpty) return kNoMerge;
    }
  }
  [[nodiscard]] Symbol join(Symbol, Symbol, std::uint32_t rank) const noexcept { return products_[rank]; }

  /// Appends the symbols of `text` before any merge: one per byte, or one per character (kEscapedSpaces; spaces stand unescaped).
  void split(std::string_view text, std::vector<Symbol>& symbols) const;
  /// Appends what a symbol becomes. Throws Error(kBadRequest) where the vocabulary cannot express it.
  void emit(Symbol symbol, std::vector<Token>& out) const {
    if (symbol < vocab_.size()) {
      out.push_back(symbol);
    } else {
      emit_fallback(symbol, out);
    }
  }
  [[nodiscard]] const SafeCuts& cuts() const noexcept { return cuts_; }

 private:
  // Two symbols and a rank share one word: half the memory of a plain table, and the table is what merging waits for.
  static constexpr unsigned kSymbolBits = 21;
  static constexpr unsigned kRankBits = 22;
  static constexpr std::uint64_t kRankMask = (std::uint64_t{1} << kRankBits) - 1;
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static_assert(2 * kSymbolBits + kRankBits == 64);

  // Vocabularies begin with the 256 bytes, and every piece begins as bytes: their pairs have a table of their own, in which those of
  // letters lie together, where the hashed one would fetch a cache line for each.
  static constexpr Symbol kNearSymbols = 256;

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return static_cast<std::size_t>(hash_text(text)); }
  };

  [[nodiscard]] std::size_t slot_of(std::uint64_t pair) const noexcept { return static_cast<std::size_t>((pair * kHashSeed1) >> shift_); }
  [[nodiscard]] Symbol find_symbol(std::string_view stored) const;
  Symbol symbol_of(std::string_view stored);
  Symbol add_symbol(std::string bytes);
  [[nodiscard]] std::string bytes_of(std::string_view stored) const;
  void add_merge(std::string_view merge, std::size_t index);
  void insert(Symbol left, Symbol right, std::uint32_t rank);
  void make_fallbacks(Token unknown);
  void split_characters(std::string_view text, std::vector<Symbol>& symbols) const;
  void emit_fallback(Symbol symbol, std::vector<Token>& out) const;

  static constexpr Symbol kNoSymbol = kNoToken;

  const Vocab& vocab_;
  TextForm form_;
  std::vector<std::uint64_t> slots_;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
  std::vector<std::uint32_t> near_ranks_;  ///< by left, right below kNearSymbols: the rank or kNoMerge
  std::vector<Symbol> products_;           ///< by rank
  std::vector<Symbol> byte_symbols_;       ///< 256: a byte; in kEscapedSpaces one that is part of no known character
  std::vector<Symbol> character_symbols_;  ///< 128: ASCII, kEscapedSpaces
  std::unordered_map<std::string, Symbol, TextHash, std::equal_to<>> extra_;  ///< texts that only merges mention
  std::vector<std::string> extra_bytes_;                                      ///< what each extra symbol stands for
  std::vector<Token> byte_ids_;  ///< 256: token of a byte, the unknown token, kSkipToken or kNoToken
  SafeCuts cuts_;
};

}  // namespace quench
