// Text: encoding any bytes and decoding the ids gives the bytes, whatever the rules and the vocabulary; and the pre-tokenizer's pieces
// make up the text. Metadata: any keys and values give either an Error or a tokenizer that works.
// usage: tokenizer_fuzz NEW_CORPUS tests/corpus/tokenizer
//
// An input is one byte that picks the kind (byte level, SentencePiece, gemma4, metadata), one or two that pick the vocabulary, and the
// text or the description of the metadata.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "gguf/metadata.h"
#include "text/pretokenizer.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/tokenizer_vocab.h"

namespace {

using namespace quench;

[[noreturn]] void defect(const char* what) {
  (void)std::fprintf(stderr, "%s\n", what);
  std::abort();
}

enum class Kind : unsigned { kByteLevel, kSentencePiece, kGemma4, kMetadata, kCount };

const std::vector<std::string>& letters() {
  static const std::vector<std::string> all = {"a",
                                               "e",
                                               "t",
                                               " ",
                                               "1",
                                               "\n",
                                               "'",
                                               "<",
                                               "|",
                                               "\xC3\xA9",
                                               "\xD1\x80",
                                               "\xE4\xB8\xAD",
                                               ">",
                                               "s",
                                               "\xE0\xA4\xA8",
                                               "\xE2\x80\x99",
                                               "\xCC\x81",
                                               "\xF0\x9F\x98\x80"};
  return all;
}

std::string stored(std::string_view bytes, Kind kind) {
  std::string text;
  for (const char c : bytes) {
    if (kind == Kind::kByteLevel) {
      text += byte_character(static_cast<unsigned char>(c));
    } else if (c == ' ') {
      text += "\xE2\x96\x81";
    } else {
      text += c;
    }
  }
  return text;
}

/// Whether the vocabulary of this seed has specials that swallow white space, so that not all of a text comes back.
bool strips(std::uint64_t seed) { return seed == 2; }

/// All bytes, some markers, and random words of the letters; for byte pairs, the merges that make them.
TokenizerParts make_parts(Kind kind, std::string_view pre, std::uint64_t seed) {
  Xoshiro256 random(seed);
  TokenizerParts parts;
  parts.model = kind == Kind::kByteLevel ? "gpt2" : kind == Kind::kSentencePiece ? "llama" : "gemma4";
  parts.pre = pre;
  parts.add_space_prefix = seed % 2 == 0;
  std::vector<std::string> known;
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<unsigned char>(b);
    parts.tokens.push_back(kind == Kind::kByteLevel ? byte_character(byte) : byte_escape(byte));
    parts.types.push_back(kind == Kind::kByteLevel ? TokenType::kNormal : TokenType::kByte);
  }
  const auto add = [&](const std::string& text, TokenType type) {
    if (std::find(parts.tokens.begin(), parts.tokens.end(), text) != parts.tokens.end()) return;
    parts.tokens.push_back(text);
    parts.types.push_back(type);
  };
  for (const std::string& letter : letters()) {
    known.push_back(stored(letter, kind));
    add(known.back(), TokenType::kNormal);
  }
  for (int i = 0; i < 120; ++i) {
    const std::string left = known[random.below(known.size())];
    const std::string right = known[random.below(known.size())];
    if (left.size() + right.size() > 20 || left.find(' ', 1) != std::string::npos) continue;
    parts.merges.push_back(left + " " + right);
    known.push_back(left + right);
    // Some products are no tokens.
    if (random.below(8) != 0) add(left + right, TokenType::kNormal);
  }
  for (const char* text : {"<|a|>", "<s>", "<|", "t<"}) add(text, TokenType::kControl);
  for (const char* text : {"\n\n", "\n\n\n", "  ", "<e>"}) add(text, TokenType::kUserDefined);
  if (strips(seed)) {
    const auto position = [&](const char* text) {
      return static_cast<Token>(std::find(parts.tokens.begin(), parts.tokens.end(), text) - parts.tokens.begin());
    };
    parts.strip_left = {position("<|a|>")};
    parts.strip_right = {position("<s>"), position("<e>")};
  }
  for (std::size_t i = 0; i < parts.tokens.size(); ++i) parts.scores.push_back(static_cast<float>(random.below(9)) - 4.0f);
  return parts;
}

const Tokenizer& tokenizer_for(Kind kind, std::string_view pre, std::uint64_t seed) {
  static std::map<std::tuple<Kind, std::string, std::uint64_t>, std::unique_ptr<Tokenizer>> made;
  auto& slot = made[{kind, std::string(pre), seed}];
  if (!slot) slot = Tokenizer::from_parts(make_parts(kind, pre, seed));
  return *slot;
}

void check_text(Kind kind, std::string_view pre, std::uint64_t seed, std::string_view text) {
  const Tokenizer& tokenizer = tokenizer_for(kind, pre, seed);
  std::string pieces;
  for (const std::string_view piece : tokenizer.chunks(text)) {
    if (piece.empty()) defect("an empty piece");
    pieces += piece;
  }
  if (pieces != text) defect("the pieces are not the text");
  // To SentencePiece, U+2581 is the same character as a space.
  const bool exact = (kind == Kind::kByteLevel || text.find("\xE2\x96\x81") == std::string_view::npos) && !strips(seed);
  const std::size_t third = text.size() / 3;
  const TextSpan spans[] = {{text.substr(0, third), Specials::kRecognise},
                            {text.substr(third, third), Specials::kAsText},
                            {text.substr(2 * third), Specials::kRecognise}};
  if (exact && tokenizer.decode(tokenizer.encode_spans(spans)) != text) defect("decode(encode_spans(spans)) is not the text");
  for (const Specials specials : {Specials::kRecognise, Specials::kAsText}) {
    const std::vector<Token> ids = tokenizer.encode_raw(text, specials);
    if (exact && tokenizer.decode(ids) != text) defect("decode(encode(text)) is not the text");
    for (const Token id : ids) {
      if (id >= tokenizer.vocab_size()) defect("an id outside the vocabulary");
      if (specials == Specials::kAsText && tokenizer.token_type(id) == TokenType::kControl) defect("plain text became a control token");
    }
    StreamDecoder decoder(tokenizer, true);
    std::string streamed;
    for (const Token id : ids) streamed += decoder.push(id);
    streamed += decoder.flush();
  }
}

/// Reads values off the input; zeros when it is spent.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool spent() const { return bytes_.empty(); }
  unsigned byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    return value;
  }
  std::string text() {
    const std::size_t size = std::min<std::size_t>(byte() % 12, bytes_.size());
    std::string value(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return value;
  }

 private:
  std::string_view bytes_;
};

gguf::Value any_value(Input& input) {
  const unsigned type = input.byte() % 8;
  const std::size_t count = input.byte() % 20;
  switch (type) {
    case 0: return std::uint32_t{input.byte()};
    case 1: return static_cast<std::int32_t>(input.byte()) - 128;
    case 2: return input.byte() % 2 == 0;
    case 3: return input.text();
    case 4: {
      std::vector<std::string> texts(count);
      for (auto& text : texts) text = input.text();
      return gguf::Array(texts);
    }
    case 5: {
      std::vector<std::int32_t> numbers(count);
      for (auto& number : numbers) number = static_cast<std::int32_t>(input.byte() % 9) - 1;
      return gguf::Array(numbers);
    }
    case 6: {
      std::vector<float> numbers(count);
      for (auto& number : numbers) number = static_cast<float>(input.byte()) / 0.0f * static_cast<float>(input.byte() % 3) + 1.0f;
      return gguf::Array(numbers);
    }
    default: return static_cast<double>(input.byte());
  }
}

void check_metadata(std::string_view bytes) {
  constexpr std::string_view kKeys[] = {"model",         "pre",           "tokens",           "token_type",       "scores",
                                        "merges",        "bos_token_id",  "eos_token_id",     "eot_token_id",     "unknown_token_id",
                                        "add_bos_token", "add_eos_token", "add_space_prefix", "fim_pad_token_id", "eom_token_id"};
  constexpr std::string_view kModels[] = {"gpt2", "llama", "gemma4", "bert"};
  Input input(bytes);
  gguf::Metadata metadata;
  const unsigned choice = input.byte();
  metadata.set("tokenizer.ggml.model", std::string(kModels[choice % 4]));
  const std::size_t pre = input.byte() % (pretokenizer_names().size() + 2);
  if (pre < pretokenizer_names().size()) metadata.set("tokenizer.ggml.pre", std::string(pretokenizer_names()[pre]));
  if (pre == pretokenizer_names().size()) metadata.set("tokenizer.ggml.pre", std::string("unheard-of"));
  const TokenizerOptions options{
      .pre_override = choice / 4 % 8 == 7 ? "neither" : "", .strict = choice / 32 % 2 != 0, .skip_inexpressible = choice / 64 % 2 != 0};
  const std::string text = input.text();
  while (!input.spent()) {
    const std::string key = "tokenizer.ggml." + std::string(kKeys[input.byte() % std::size(kKeys)]);
    metadata.set(key, any_value(input));
  }
  try {
    const auto tokenizer = Tokenizer::from_metadata(metadata, options);
    for (const Token token : tokenizer->end_tokens()) {
      if (token >= tokenizer->vocab_size()) defect("an end token outside the vocabulary");
    }
    (void)tokenizer->decode(tokenizer->encode(text));
    for (Token token = 0; token < tokenizer->vocab_size(); ++token) (void)tokenizer->token_bytes(token, true);
  } catch (const Error&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  set_log_level(LogLevel::kOff);
  if (size < 3) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto kind = static_cast<Kind>(data[0] % static_cast<unsigned>(Kind::kCount));
  if (kind == Kind::kMetadata) {
    check_metadata(bytes.substr(1));
    return 0;
  }
  const std::string_view pre = pretokenizer_names()[data[1] % pretokenizer_names().size()];
  if (kind == Kind::kByteLevel && !pretokenizer_traits(pre).byte_encode) return 0;
  check_text(kind, kind == Kind::kByteLevel ? pre : "", data[2] % 3, bytes.substr(3));
  return 0;
}
