#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "text/tokenizer_encoder.h"

namespace quench {

BpeRules::BpeRules(const Vocab& vocab, std::span<const std::string> merges, TextForm form, Token unknown)
    : vocab_(vocab), form_(form), cuts_(merges.size()) {
  if (merges.size() >= kRankMask) throw_unsupported("tokenizer.ggml.merges: more than 4,194,302 merges");
  const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(64, merges.size() + merges.size() / 2));
  slots_.assign(capacity, kEmpty);
  near_ranks_.assign(std::size_t{kNearSymbols} * kNearSymbols, kNoMerge);
  mask_ = capacity - 1;
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(capacity));
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<unsigned char>(b);
    // In raw UTF-8 a byte that is part of no known character is a symbol that no merge mentions.
    byte_symbols_.push_back(form_ == TextForm::kByteAlphabet ? symbol_of(byte_character(byte))
                                                             : add_symbol(std::string(1, static_cast<char>(b))));
  }
  products_.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) add_merge(merges[i], i);
  if (form_ == TextForm::kEscapedSpaces) {
    for (unsigned c = 0; c < 128; ++c) {
      const Symbol symbol = find_symbol(c == ' ' ? std::string("\xE2\x96\x81") : std::string(1, static_cast<char>(c)));
      character_symbols_.push_back(symbol != kNoSymbol ? symbol : byte_symbols_[c]);
    }
  }
  make_fallbacks(unknown);
}

BpeRules::Symbol BpeRules::find_symbol(std::string_view stored) const {
  const Token token = vocab_.find(stored);
  if (token != kNoToken && vocab_.is_text(token)) return token;
  const auto extra = extra_.find(stored);
  return extra != extra_.end() ? extra->second : kNoSymbol;
}

BpeRules::Symbol BpeRules::symbol_of(std::string_view stored) {
  const Symbol known = find_symbol(stored);
  if (known != kNoSymbol) return known;
  const Symbol symbol = add_symbol(bytes_of(stored));
  extra_.emplace(stored, symbol);
  return symbol;
}

BpeRules::Symbol BpeRules::add_symbol(std::string bytes) {
  const std::size_t symbol = vocab_.size() + extra_bytes_.size();
  if (symbol >= (std::size_t{1} << kSymbolBits) - 1) throw_unsupported("tokenizer.ggml.merges: more than 2,097,150 different texts");
  extra_bytes_.push_back(std::move(bytes));
  return static_cast<Symbol>(symbol);
}

std::string BpeRules::bytes_of(std::string_view stored) const {
  if (form_ == TextForm::kEscapedSpaces) return unescape_spaces(stored);
  std::string bytes;
  append_alphabet_bytes(stored, bytes);
  return bytes;
}

void BpeRules::add_merge(std::string_view merge, std::size_t index) {
  // The left text may itself begin with a space, so the separator is looked for from the second character on.
  const std::size_t space = merge.size() > 1 ? merge.find(' ', 1) : std::string_view::npos;
  if (space == std::string_view::npos || space + 1 == merge.size()) {
    throw_bad_file("tokenizer.ggml.merges: entry " + std::to_string(index) + " is not two texts with a space between them");
  }
  const std::string_view left = merge.substr(0, space);
  const std::string_view right = merge.substr(space + 1);
  const Symbol left_symbol = symbol_of(left);
  const Symbol right_symbol = symbol_of(right);
  const std::string product = std::string(left) += right;
  const Symbol symbol = symbol_of(product);
  products_.push_back(symbol);
  insert(left_symbol, right_symbol, static_cast<std::uint32_t>(index));
  cuts_.add(bytes_of(product));
}

void BpeRules::insert(Symbol left, Symbol right, std::uint32_t rank) {
  if ((left | right) < kNearSymbols) {
    std::uint32_t& near = near_ranks_[left * kNearSymbols + right];
    near = std::min(near, rank);
    return;
  }
  const std::uint64_t pair = (static_cast<std::uint64_t>(left) << kSymbolBits) | right;
  std::size_t slot = slot_of(pair);
  for (; slots_[slot] != kEmpty; slot = (slot + 1) & mask_) {
    if (slots_[slot] >> kRankBits == pair) return;
  }
  slots_[slot] = (pair << kRankBits) | rank;
}

void BpeRules::make_fallbacks(Token unknown) {
  for (unsigned b = 0; b < 256; ++b) {
    const Token token = vocab_.byte_token(static_cast<unsigned char>(b));
    byte_ids_.push_back(token != kNoToken && vocab_.is_text(token) ? token : unknown);
  }
}

void BpeRules::split(std::string_view text, std::vector<Symbol>& symbols) const {
  if (form_ == TextForm::kEscapedSpaces) return split_characters(text, symbols);
  const std::size_t old = symbols.size();
  symbols.resize(old + text.size());
  for (std::size_t i = 0; i < text.size(); ++i) symbols[old + i] = byte_symbols_[static_cast<unsigned char>(text[i])];
}

void BpeRules::split_characters(std::string_view text, std::vector<Symbol>& symbols) const {
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 128) {
      symbols.push_back(character_symbols_[first]);
      ++at;
      continue;
    }
    const std::string_view character = text.substr(at, character_bytes(text.data() + at, text.size() - at));
    const Symbol symbol = character.size() > 1 ? find_symbol(character) : kNoSymbol;
    if (symbol != kNoSymbol) {
      symbols.push_back(symbol);
    } else {
      for (const char c : character) symbols.push_back(byte_symbols_[static_cast<unsigned char>(c)]);
    }
    at += character.size();
  }
}

void BpeRules::emit_fallback(Symbol symbol, std::vector<Token>& out) const {
  for (const char c : extra_bytes_[symbol - vocab_.size()]) {
    const Token token = byte_ids_[static_cast<unsigned char>(c)];
    if (token == kNoToken) throw InexpressibleByte(static_cast<unsigned char>(c));
    out.push_back(token);
  }
}

}  // namespace quench
