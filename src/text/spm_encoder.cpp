#include "text/spm_encoder.h"

#include <bit>

#include "text/tokenizer_batch.h"

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
    const auto a = static_cast<unsigned char>(text[left.begin]);
    const auto b = static_cast<unsigned char>(text[right.begin]);
    if (left.bytes + right.bytes == 2 && (a | b) < 0x80) return encoder.ascii_ranks_[a * 128u + b];
    const Token token = encoder.index_.find(text.substr(left.begin, left.bytes + right.bytes));
    return token == kNoToken ? kNoMerge : encoder.ranks_[token];
  }
  [[nodiscard]] Symbol join(Symbol left, Symbol right, std::uint32_t) const noexcept { return {left.begin, left.bytes + right.bytes}; }
};

SpmEncoder::SpmEncoder(const Vocab& vocab, const std::vector<float>& scores, bool add_space_prefix, Token unknown)
    : add_space_prefix_(add_space_prefix), keys_(keys_of(vocab)), index_(keys_), cuts_(vocab.size()) {
  ranks_.reserve(vocab.size());
  for (Token token = 0; token < vocab.size(); ++token) {
    ranks_.push_back(rank_of_score(scores[token]));
    cuts_.add(keys_[token]);
  }
  for (unsigned pair = 0; pair < 128 * 128; ++pair) {
    const char text[2] = {static_cast<char>(pair / 128), static_cast<char>(pair % 128)};
    const Token token = index_.find({text, 2});
    ascii_ranks_.push_back(token == kNoToken ? kNoMerge : ranks_[token]);
  }
  for (unsigned b = 0; b < 256; ++b) {
    const Token token = vocab.byte_token(static_cast<unsigned char>(b));
    byte_ids_.push_back(token != kNoToken && vocab.is_text(token) ? token : unknown);
  }
}

void SpmEncoder::encode(std::string_view run, bool after_special, EncodeScratch& scratch, std::vector<Token>& out) const {
  const bool prefix = add_space_prefix_ && after_special;
  if (prefix || run.find(kEscapedSpace) != std::string_view::npos) {
    scratch.text.assign(prefix ? 1 : 0, ' ');
    append_unescaped_spaces(run, scratch.text);
    run = scratch.text;
  }
  const auto merge_segment = [&](std::string_view segment, PieceKind, std::vector<Token>& ids) { merge(segment, scratch, ids); };
  PieceBatch batch(scratch.cache, merge_segment, out);
  for (std::size_t begin = 0; begin < run.size();) {
    const std::size_t end = cuts_.next(run, begin);
    if (end - begin <= PieceCache::kMaxBytes) {
      batch.add(run.substr(begin, end - begin), run.size() - begin, PieceKind::kSegment);
    } else {
      batch.flush();
      merge(run.substr(begin, end - begin), scratch, out);
    }
    begin = end;
  }
  batch.flush();
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
    if (token == kNoToken) throw InexpressibleByte(static_cast<unsigned char>(c));
    out.push_back(token);
  }
}

}  // namespace quench
