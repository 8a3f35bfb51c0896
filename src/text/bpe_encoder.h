#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_batch.h"
#include "text/tokenizer_encoder.h"
#include "text/tokenizer_vocab.h"

namespace quench {

/// Byte-pair encoding: the pre-tokenizer's pieces, each merged on its own. Also the SentencePiece-like kind of Gemma 4, over raw UTF-8.
class BpeEncoder final : public Encoder {
 public:
  BpeEncoder(const Vocab& vocab, std::span<const std::string> merges, PreTokenizer pre, const PreTraits& traits, Token unknown);

  void encode(std::string_view run, bool after_special, EncodeScratch& scratch, std::vector<Token>& out) const override;
  void pieces(std::string_view text, std::vector<std::size_t>& ends) const override { pretokenize(pre_, text, ends); }

 private:
  void encode_piece(std::string_view piece, PieceKind kind, EncodeScratch& scratch, std::vector<Token>& out) const;
  template <typename Batch>
  void add_segments(std::string_view piece, std::size_t readable, EncodeScratch& scratch, Batch& batch, std::vector<Token>& out) const;
  void merge_cut(std::string_view piece, EncodeScratch& scratch, std::vector<Token>& out) const;
  void merge(std::string_view text, EncodeScratch& scratch, std::vector<Token>& out) const;
  [[nodiscard]] Token whole_token(std::string_view piece) const noexcept;

  PreTokenizer pre_;
  PreTraits traits_;
  BpeRules rules_;
  TextArena whole_texts_;
  ArenaIndex whole_index_;
};

}  // namespace quench
