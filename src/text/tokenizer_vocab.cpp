#include "text/tokenizer_vocab.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace quench {
namespace {

constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";

/// GPT-2's alphabet: printable Latin-1 bytes stand for themselves, the others take the code points from 256 on, in order.
struct ByteAlphabet {
  std::array<std::uint16_t, 256> character{};
  std::array<std::int16_t, 512> byte{};

  constexpr ByteAlphabet() {
    byte.fill(-1);
    unsigned next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      const unsigned code = printable ? b : next++;
      character[b] = static_cast<std::uint16_t>(code);
      byte[code] = static_cast<std::int16_t>(b);
    }
  }
};
constexpr ByteAlphabet kAlphabet;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// The byte that "<0x0A>" names, or -1.
int escaped_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int high = hex_digit(text[3]);
  const int low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string bytes_of(std::string_view text, TokenType type, TextForm form) {
  // Specials are matched and written as they stand, whatever the form of the other entries.
  if (type == TokenType::kControl || type == TokenType::kUserDefined || type == TokenType::kUnknown) return std::string(text);
  if (type == TokenType::kByte) {
    if (const int byte = escaped_byte(text); byte >= 0) return std::string(1, static_cast<char>(byte));
  }
  if (form == TextForm::kEscapedSpaces) return unescape_spaces(text);
  std::string bytes;
  append_alphabet_bytes(text, bytes);
  return bytes;
}

TextArena arena_of(const std::vector<std::string>& texts) {
  std::size_t bytes = 0;
  for (const auto& text : texts) bytes += text.size();
  TextArena arena;
  arena.reserve(texts.size(), bytes);
  for (const auto& text : texts) arena.append(text);
  return arena;
}

}  // namespace

void TextArena::reserve(std::size_t count, std::size_t bytes) {
  starts_.reserve(count + 1);
  bytes_.reserve(bytes);
}

void TextArena::append(std::string_view text) {
  bytes_.append(text);
  starts_.push_back(bytes_.size());
}

ArenaIndex::ArenaIndex(const TextArena& arena) : arena_(&arena) {
  slots_.resize(std::bit_ceil(std::max<std::size_t>(16, 2 * arena.size())));
  mask_ = slots_.size() - 1;
  for (std::size_t i = 0; i < arena.size(); ++i) {
    const std::string_view text = arena[i];
    longest_ = std::max(longest_, text.size());
    if (text.empty() || find(text) != kNoToken) continue;
    const std::uint64_t hash = hash_text(text);
    std::size_t slot = hash & mask_;
    while (slots_[slot].index != kNoToken) slot = (slot + 1) & mask_;
    slots_[slot] = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(i)};
  }
}

Vocab::Vocab(const std::vector<std::string>& texts, std::vector<TokenType> types, TextForm form)
    : texts_(arena_of(texts)), types_(std::move(types)), index_(texts_), byte_tokens_(256, kNoToken) {
  bytes_.reserve(texts.size(), 0);
  for (std::size_t i = 0; i < texts.size(); ++i) bytes_.append(bytes_of(texts[i], types_[i], form));
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<unsigned char>(b);
    if (form == TextForm::kByteAlphabet) {
      byte_tokens_[b] = find(byte_character(byte));
      continue;
    }
    const Token escape = find(byte_escape(byte));
    byte_tokens_[b] = escape != kNoToken ? escape : find(std::string(1, static_cast<char>(byte)));
  }
}

std::string byte_character(unsigned char byte) {
  const unsigned code = kAlphabet.character[byte];
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0u | (code >> 6)), static_cast<char>(0x80u | (code & 0x3Fu))};
}

void append_alphabet_bytes(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_bytes(text.data() + i, text.size() - i);
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[i + k]); };
    const unsigned code = length == 2 ? ((byte(0) & 0x1Fu) << 6) | (byte(1) & 0x3Fu) : byte(0);
    const bool in_alphabet = (length == 1 && code < 0x80) || (length == 2 && code < kAlphabet.byte.size());
    if (in_alphabet && kAlphabet.byte[code] >= 0) {
      out.push_back(static_cast<char>(kAlphabet.byte[code]));
    } else {
      out.append(text.substr(i, length));
    }
    i += length;
  }
}

void append_unescaped_spaces(std::string_view text, std::string& out) {
  out.reserve(out.size() + text.size());
  for (std::size_t at = text.find(kEscapedSpace); at != std::string_view::npos; at = text.find(kEscapedSpace)) {
    out.append(text.substr(0, at)).push_back(' ');
    text.remove_prefix(at + kEscapedSpace.size());
  }
  out.append(text);
}

std::string byte_escape(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15u], '>'};
}

}  // namespace quench
