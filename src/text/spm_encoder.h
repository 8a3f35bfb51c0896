#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer_cuts.h"
#include "text/tokenizer_encoder.h"
#include "text/tokenizer_merge.h"
#include "text/tokenizer_vocab.h"

namespace quench {

/// SentencePiece-style encoding as llama.cpp's "llama" kind does it: neighbours whose joined text is a token are joined, the highest
/// score first (the leftmost of equals), and a character that is no token becomes its bytes' tokens.
///
/// Spaces stand unescaped inside; U+2581 in a text is the same character as a space, as in llama.cpp.
/// Control, unknown and byte tokens are never made by joining, so a typed "<0x0A>" or "</s>" stays text (llama.cpp would join them where
/// its vocabulary has all the parts).
class SpmEncoder final : public Encoder {
 public:
  /// `scores` has one entry per token and no NaN.
  SpmEncoder(const Vocab& vocab, const std::vector<float>& scores, bool add_space_prefix, Token unknown);

  void encode(std::string_view run, bool after_special, EncodeScratch& scratch, std::vector<Token>& out) const override;
  void pieces(std::string_view text, std::vector<std::size_t>& ends) const override {
    if (!text.empty()) ends.push_back(text.size());
  }

 private:
  struct Rules;
  void merge(std::string_view segment, EncodeScratch& scratch, std::vector<Token>& out) const;
  void emit(std::string_view symbol, std::vector<Token>& out) const;

  bool add_space_prefix_;
  TextArena keys_;  ///< by token: its text with unescaped spaces; empty where text never becomes it
  ArenaIndex index_;
  std::vector<std::uint32_t> ranks_;        ///< by token: lower for a higher score
  std::vector<std::uint32_t> ascii_ranks_;  ///< 128 x 128: of two ASCII characters, which is what most merging begins with
  std::vector<Token> byte_ids_;             ///< 256: token of a byte, the unknown token, kSkipToken or kNoToken
  SafeCuts cuts_;
};

}  // namespace quench
