#include "text/bpe_encoder.h"

#include "text/tokenizer_batch.h"

namespace quench {
namespace {

constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";

/// By token: the text that is this token as a whole piece; empty for all where pieces are merged anyway.
TextArena whole_texts(const Vocab& vocab, const PreTraits& traits) {
  TextArena texts;
  for (Token token = 0; token < vocab.size(); ++token) {
    std::string text;
    if (vocab.is_text(token) && traits.ignore_merges && traits.byte_encode) {
      append_alphabet_bytes(vocab.text(token), text);
    } else if (vocab.is_text(token) && (traits.ignore_merges || traits.newline_runs_are_tokens)) {
      text = unescape_spaces(vocab.text(token));
    }
    texts.append(text);
  }
  return texts;
}

}  // namespace

BpeEncoder::BpeEncoder(const Vocab& vocab, std::span<const std::string> merges, PreTokenizer pre, const PreTraits& traits, Token unknown)
    : pre_(pre),
      traits_(traits),
      rules_(vocab, merges, traits.byte_encode ? TextForm::kByteAlphabet : TextForm::kEscapedSpaces, unknown),
      whole_texts_(whole_texts(vocab, traits)),
      whole_index_(whole_texts_) {}

void BpeEncoder::encode(std::string_view run, bool, EncodeScratch& scratch, std::vector<Token>& out) const {
  if (traits_.escape_whitespaces && run.find(kEscapedSpace) != std::string_view::npos) {
    scratch.text.clear();
    append_unescaped_spaces(run, scratch.text);
    run = scratch.text;
  }
  scratch.ends.clear();
  scratch.ends.reserve(run.size());  // room for the worst case; memory that no piece reaches is never touched
  pretokenize(pre_, run, scratch.ends);
  const auto encode_short = [&](std::string_view piece, PieceKind kind, std::vector<Token>& ids) {
    encode_piece(piece, kind, scratch, ids);
  };
  PieceBatch batch(scratch.cache, encode_short, out);
  std::size_t begin = 0;
  for (const std::size_t end : scratch.ends) {
    const std::string_view piece = run.substr(begin, end - begin);
    if (piece.size() <= PieceCache::kMaxBytes) {
      batch.add(piece, run.size() - begin, PieceKind::kWhole);
    } else if (const Token whole = whole_token(piece); whole != kNoToken) {
      batch.flush();
      out.push_back(whole);
    } else {
      add_segments(piece, run.size() - begin, scratch, batch, out);
    }
    begin = end;
  }
  batch.flush();
}

void BpeEncoder::encode_piece(std::string_view piece, PieceKind kind, EncodeScratch& scratch, std::vector<Token>& out) const {
  const Token whole = kind == PieceKind::kWhole ? whole_token(piece) : kNoToken;
  if (whole != kNoToken) {
    out.push_back(whole);
  } else {
    merge_cut(piece, scratch, out);
  }
}

/// Words of scripts that the vocabulary knows little of have more ids than a cache entry holds; their parts between safe cuts have few.
void BpeEncoder::merge_cut(std::string_view piece, EncodeScratch& scratch, std::vector<Token>& out) const {
  for (std::size_t begin = 0; begin < piece.size();) {
    const std::size_t end = rules_.cuts().next(piece, begin);
    const std::string_view segment = piece.substr(begin, end - begin);
    begin = end;
    if (segment.size() == piece.size()) return merge(piece, scratch, out);
    scratch.cache.append(PieceCache::segment_key_of(segment, piece.size() - (end - segment.size())), out,
                         [&] { merge(segment, scratch, out); });
  }
}

template <typename Batch>
void BpeEncoder::add_segments(std::string_view piece, std::size_t readable, EncodeScratch& scratch, Batch& batch,
                              std::vector<Token>& out) const {
  for (std::size_t begin = 0; begin < piece.size();) {
    const std::size_t end = rules_.cuts().next(piece, begin);
    const std::string_view segment = piece.substr(begin, end - begin);
    if (segment.size() <= PieceCache::kMaxBytes) {
      batch.add(segment, readable - begin, PieceKind::kSegment);
    } else {
      batch.flush();
      merge(segment, scratch, out);
    }
    begin = end;
  }
}

void BpeEncoder::merge(std::string_view text, EncodeScratch& scratch, std::vector<Token>& out) const {
  scratch.symbols.clear();
  rules_.split(text, scratch.symbols);
  merge_symbols(rules_, scratch.symbols, scratch.merge);
  for (const BpeRules::Symbol symbol : scratch.symbols) rules_.emit(symbol, out);
}

Token BpeEncoder::whole_token(std::string_view piece) const noexcept {
  const bool newlines = traits_.newline_runs_are_tokens && piece.find_first_not_of('\n') == std::string_view::npos;
  return traits_.ignore_merges || newlines ? whole_index_.find(piece) : kNoToken;
}

}  // namespace quench
