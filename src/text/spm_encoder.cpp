#include "text/spm_encoder.h"

#include <bit>
#include <span>

namespace quench {
namespace {

constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";

/// Order-preserving map from scores to ranks, best score to lowest rank. The two zeros are one score. No finite or infinite score
/// reaches kNoMerge.
std::uint32_t rank_of_score(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);
  const std::uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

TextArena keys_of(const Vocab& vocab) {
  TextArena keys;
  keys.reserve(vocab.size(), 0);
  for (Token token = 0; token < vocab.size(); ++token) {
    const std::string_view text = vocab.text(token);
    // A stored space never meets an escaped text; such tokens (Gemma's runs of spaces) are matched as user-defined ones.
    const bool reachable = vocab.is_text(token) && vocab.type(token) != TokenType::kByte && text.find(' ') == std::string_view::npos;
    keys.append(reachable ? unescape_spaces(text) : std::string());
  }
  return keys;
}

}  // namespace

struct SpmEncoder::Rules {
  using Symbol = TextRange;
  const SpmEncoder& encoder;
  std::string_view text;

  [[nodiscard]] std::uint32_t rank(Symbol left, Symbol right) const noexcept {
    const Token token = encoder.index_.find(text.substr(left.begin, left.bytes + right.bytes));
    return token == kNoToken ? kNoMerge : encoder.ranks_[token];
  }
  [[nodiscard]] Symbol join(Symbol left, Symbol right, std::uint32_t) const noexcept { return {left.begin, left.bytes + right.bytes}; }
};

SpmEncoder::SpmEncoder(const Vocab& vocab, const std::vector<float>& scores, bool add_space_prefix, Token unknown)
    : add_space_prefix_(add_space_prefix), keys_(keys_of(vocab)), index_(keys_) {
  ranks_.reserve(vocab.size());
  for (Token token = 0; token < vocab.size(); ++token) {
    ranks_.push_back(rank_of_score(scores[token]));
    cuts_.add(keys_[token]);
  }
  for (unsigned b = 0; b < 256; ++b) {
    const Token token = vocab.byte_token(static_cast<unsigned char>(b));
    byte_ids_.push_back(token != kNoToken && vocab.is_text(token) ? token : unknown);
  }
}

void SpmEncoder::encode(std::string_view run, bool after_special, EncodeScratch& scratch, std::vector<Token>& out) const {
  const bool prefix = add_space_prefix_ && after_special;
  if (prefix || run.find(kEscapedSpace) != std::string_view::npos) {
    scratch.text = unescape_spaces(run);
    if (prefix) scratch.text.insert(scratch.text.begin(), ' ');
    run = scratch.text;
  }
  for (std::size_t begin = 0; begin < run.size();) {
    const std::size_t end = cuts_.next(run, begin);
    encode_segment(run.substr(begin, end - begin), run.size() - begin, scratch, out);
    begin = end;
  }
}

void SpmEncoder::encode_segment(std::string_view segment, std::size_t readable, EncodeScratch& scratch, std::vector<Token>& out) const {
  if (segment.size() > PieceCache::kMaxBytes) return merge(segment, scratch, out);
  const PieceCache::Key key = PieceCache::key_of(segment, readable);
  if (scratch.cache.append(key, out)) return;
  const std::size_t old = out.size();
  merge(segment, scratch, out);
  scratch.cache.insert(key, std::span(out).subspan(old));
}

void SpmEncoder::merge(std::string_view segment, EncodeScratch& scratch, std::vector<Token>& out) const {
  scratch.ranges.clear();
  for (std::size_t at = 0; at < segment.size();) {
    const std::size_t bytes = character_bytes(segment.data() + at, segment.size() - at);
    scratch.ranges.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes)});
    at += bytes;
  }
  merge_symbols(Rules{*this, segment}, scratch.ranges, scratch.merge);
  for (const TextRange range : scratch.ranges) emit(segment.substr(range.begin, range.bytes), out);
}

void SpmEncoder::emit(std::string_view symbol, std::vector<Token>& out) const {
  if (const Token token = index_.find(symbol); token != kNoToken) {
    out.push_back(token);
    return;
  }
  for (const char c : symbol) {
    const Token token = byte_ids_[static_cast<unsigned char>(c)];
    if (token == kNoToken) throw_no_token_for(static_cast<unsigned char>(c));
    if (token == kSkipToken) continue;
    out.push_back(token);
  }
}

}  // namespace quench
