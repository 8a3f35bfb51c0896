#include "text/bpe_encoder.h"

#include <span>

#include "base/error.h"

namespace quench {
namespace {

/// Pieces are cached whole up to the cache's size, and cut into safe segments above it; the two must not meet in the cache, because a
/// whole piece may be a token by the rule of ignore_merges, and a segment only by merging.
PieceCache::Key segment_key(std::string_view segment, std::size_t readable) {
  PieceCache::Key key = PieceCache::key_of(segment, readable);
  key.words[3] |= std::uint64_t{0x80} << 56;
  return key;
}

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

void throw_no_token_for(unsigned char byte) {
  throw_bad_request("the vocabulary has no token for the byte " + byte_escape(byte) +
                    " and no unknown token, so this text cannot be encoded");
}

BpeEncoder::BpeEncoder(const Vocab& vocab, std::span<const std::string> merges, PreTokenizer pre, const PreTraits& traits, Token unknown)
    : vocab_(vocab),
      pre_(pre),
      traits_(traits),
      rules_(vocab, merges, traits.byte_encode ? TextForm::kByteAlphabet : TextForm::kEscapedSpaces, unknown),
      whole_texts_(whole_texts(vocab, traits)),
      whole_index_(whole_texts_) {
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<char>(b);
    std::vector<BpeRules::Symbol> symbols;
    rules_.split({&byte, 1}, symbols);
    single_[b] = symbols.front() < vocab_.size() ? symbols.front() : kNoToken;
  }
}

void BpeEncoder::encode(std::string_view run, bool, EncodeScratch& scratch, std::vector<Token>& out) const {
  if (traits_.escape_whitespaces && run.find(kEscapedSpace) != std::string_view::npos) {
    scratch.text = unescape_spaces(run);
    run = scratch.text;
  }
  scratch.ends.clear();
  pretokenize(pre_, run, scratch.ends);
  std::size_t begin = 0;
  for (const std::size_t end : scratch.ends) {
    encode_piece(run.substr(begin, end - begin), run.size() - begin, scratch, out);
    begin = end;
  }
}

void BpeEncoder::encode_piece(std::string_view piece, std::size_t readable, EncodeScratch& scratch, std::vector<Token>& out) const {
  if (piece.size() == 1) {
    if (const Token token = single_[static_cast<unsigned char>(piece[0])]; token != kNoToken) {
      out.push_back(token);
      return;
    }
  }
  if (piece.size() > PieceCache::kMaxBytes) return encode_long_piece(piece, scratch, out);
  const PieceCache::Key key = PieceCache::key_of(piece, readable);
  if (scratch.cache.append(key, out)) return;
  const std::size_t old = out.size();
  if (const Token whole = whole_token(piece); whole != kNoToken) {
    out.push_back(whole);
  } else {
    merge(piece, scratch, out);
  }
  scratch.cache.insert(key, std::span(out).subspan(old));
}

void BpeEncoder::encode_long_piece(std::string_view piece, EncodeScratch& scratch, std::vector<Token>& out) const {
  if (const Token whole = whole_token(piece); whole != kNoToken) {
    out.push_back(whole);
    return;
  }
  for (std::size_t begin = 0; begin < piece.size();) {
    const std::size_t end = rules_.cuts().next(piece, begin);
    const std::string_view segment = piece.substr(begin, end - begin);
    begin = end;
    if (segment.size() > PieceCache::kMaxBytes) {
      merge(segment, scratch, out);
      continue;
    }
    const PieceCache::Key key = segment_key(segment, piece.size() - (end - segment.size()));
    if (scratch.cache.append(key, out)) continue;
    const std::size_t old = out.size();
    merge(segment, scratch, out);
    scratch.cache.insert(key, std::span(out).subspan(old));
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
