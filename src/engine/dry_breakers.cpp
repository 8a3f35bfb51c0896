#include "engine/dry_breakers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"

namespace quench {
namespace {

constexpr std::size_t kLongestText = 256;  // bytes
constexpr std::size_t kLongestTail = 20;   // tokens: what a sampler compares at each step stays small

using Sequences = std::set<std::vector<Token>>;

/// A token whose bytes end with the start of `text` is a head; the tokens of the rest are its tail.
void add_heads(const Tokenizer& tokenizer, Token token, std::string_view bytes, std::string_view text, Sequences& sequences) {
  for (std::size_t n = 1; n < std::min(text.size(), bytes.size() + 1); ++n) {
    if (!bytes.ends_with(text.substr(0, n))) continue;
    const auto tail = tokenizer.encode_raw(text.substr(n), Specials::kAsText);
    std::vector<Token> sequence{token};
    sequence.insert(sequence.end(), tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(std::min(tail.size(), kLongestTail)));
    sequences.insert(std::move(sequence));
  }
}

}  // namespace

std::vector<std::string> default_dry_breakers() { return {"\n", ":", "\"", "*"}; }

std::vector<std::vector<Token>> dry_breaker_sequences(const Tokenizer& tokenizer, std::span<const std::string> texts) {
  for (const auto& text : texts) {
    if (!text.empty() && text.size() <= kLongestText) continue;
    throw_bad_request(fmt::format("dry breaker: a text of {} bytes; 1 to {} are possible", text.size(), kLongestText));
  }
  Sequences sequences;
  for (std::size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto token = static_cast<Token>(id);
    const auto bytes = tokenizer.token_bytes(token, true);
    for (const auto& text : texts) {
      if (bytes.find(text) != std::string::npos) {
        sequences.insert({token});
      } else {
        add_heads(tokenizer, token, bytes, text, sequences);
      }
    }
  }
  return {sequences.begin(), sequences.end()};
}

std::vector<std::vector<Token>> DryBreakers::sequences(std::span<const std::string> texts) {
  const std::scoped_lock lock(mutex_);
  if (!std::ranges::equal(texts, texts_)) {
    std::vector<std::string> names(texts.begin(), texts.end());
    sequences_ = dry_breaker_sequences(tokenizer_, texts);
    texts_ = std::move(names);
  }
  return sequences_;
}

}  // namespace quench
