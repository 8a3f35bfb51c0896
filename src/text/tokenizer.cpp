#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "text/bpe_encoder.h"
#include "text/pretokenizer.h"
#include "text/special_tokens.h"
#include "text/spm_encoder.h"
#include "text/tokenizer_encoder.h"
#include "text/tokenizer_loader.h"
#include "text/tokenizer_vocab.h"

namespace quench {
namespace {

/// Scratch memory that calls borrow: as many as ever ran at the same time. One lock per call, none per word, and the caches stay warm.
/// The first is made with the pool: the first call need not wait for its pages.
class ScratchPool {
 public:
  ScratchPool() { idle_.push_back(std::make_unique<EncodeScratch>()); }

  std::unique_ptr<EncodeScratch> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto scratch = std::move(idle_.back());
        idle_.pop_back();
        return scratch;
      }
    }
    return std::make_unique<EncodeScratch>();
  }

  void give(std::unique_ptr<EncodeScratch> scratch) {
    if (scratch->ends.capacity() > kKeepElements) scratch->ends = {};
    if (scratch->text.capacity() > kKeepElements) scratch->text = {};
    if (scratch->symbols.capacity() + scratch->ranges.capacity() + scratch->merge.queue.capacity() > kKeepElements) {
      scratch->symbols = {};
      scratch->ranges = {};
      scratch->merge = {};
    }
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(scratch));
  }

 private:
  static constexpr std::size_t kKeepElements = std::size_t{1} << 18;
  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeScratch>> idle_;
};

class BorrowedScratch {
 public:
  explicit BorrowedScratch(ScratchPool& pool) : pool_(pool), scratch_(pool.take()) {}
  BorrowedScratch(const BorrowedScratch&) = delete;
  BorrowedScratch& operator=(const BorrowedScratch&) = delete;
  ~BorrowedScratch() { pool_.give(std::move(scratch_)); }
  [[nodiscard]] EncodeScratch& operator*() const noexcept { return *scratch_; }

 private:
  ScratchPool& pool_;
  std::unique_ptr<EncodeScratch> scratch_;
};

struct PreChoice {
  PreTokenizer rules = PreTokenizer::kDefault;
  PreTraits traits;
  std::optional<std::string> mismatch;
};

std::string known_pretokenizers() {
  std::string names;
  for (const std::string_view name : pretokenizer_names()) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

PreChoice choose_pre(const TokenizerParts& parts, const TokenizerOptions& options) {
  const bool overridden = !options.pre_override.empty();
  const std::string& name = overridden ? options.pre_override : parts.pre;
  if (name.empty()) {
    log_warning(
        "tokenizer.ggml.pre is missing: the default pre-tokenizer serves, and answers may be worse for it; name another with --pre "
        "(ModelOptions::pretokenizer)");
    return {default_pretokenizer(), pretokenizer_traits("default"), std::nullopt};
  }
  if (const auto rules = pretokenizer_from_name(name)) {
    const PreTraits traits = pretokenizer_traits(name);
    if (!traits.byte_encode && !traits.escape_whitespaces) {
      throw_unsupported("tokenizer.ggml.pre is \"" + name + "\", which drops whitespace; quench does not do it");
    }
    return {*rules, traits, std::nullopt};
  }
  if (overridden) throw_bad_request("pre-tokenizer " + name + ": there is none of this name; there are " + known_pretokenizers());
  const std::string fallback(pretokenizer_name(fallback_pretokenizer()));
  const std::string message = "tokenizer.ggml.pre is \"" + name + "\", which is unknown";
  if (options.strict) throw_unsupported(message + "; name one to use instead with --pre (ModelOptions::pretokenizer)");
  log_warning(message + ": the rules of " + fallback +
              " serve instead, and ids may be wrong; name others with --pre (ModelOptions::pretokenizer)");
  return {fallback_pretokenizer(), pretokenizer_traits(name), name};
}

std::vector<SpecialStrip> strips_of(const TokenizerParts& parts) {
  std::vector<SpecialStrip> strips;
  strips.reserve(parts.strip_left.size() + parts.strip_right.size());
  for (const Token token : parts.strip_left) strips.push_back({.token = token, .left = true});
  for (const Token token : parts.strip_right) strips.push_back({.token = token, .right = true});
  return strips;
}

TextForm form_of(const TokenizerParts& parts, const PreChoice& pre) {
  return parts.model == "llama" || !pre.traits.byte_encode ? TextForm::kEscapedSpaces : TextForm::kByteAlphabet;
}

/// What stands for a byte without a token. Not a control token, though files name one (SmolLM2's name <|endoftext|>): it would let any
/// text end a turn.
Token unknown_of(const TokenizerParts& parts, const TokenizerOptions& options) {
  if (parts.unk && parts.types[*parts.unk] != TokenType::kControl) return *parts.unk;
  return options.skip_inexpressible ? kSkipToken : kNoToken;
}

void warn_of_skipped_bytes(const Vocab& vocab, std::string_view text) {
  std::array<bool, 256> present{};
  for (const char c : text) present[static_cast<unsigned char>(c)] = true;
  std::string missing;
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<unsigned char>(b);
    const Token token = vocab.byte_token(byte);
    if (present[b] && (token == kNoToken || !vocab.is_text(token))) missing.append(" ").append(byte_escape(byte));
  }
  log_warning("these bytes of the text are left out, for the vocabulary has neither tokens for them nor an unknown token:" + missing);
}

bool expressible(const Encoder& encoder, std::string_view piece, EncodeScratch& scratch) {
  std::vector<Token> ids;
  try {
    encoder.encode(piece, false, scratch, ids);
  } catch (const InexpressibleByte&) {
    return false;
  }
  return true;
}

/// Where in `run`, which cannot be encoded, `byte` is in the way; nothing when it is not in the text itself (a space prefix).
std::optional<std::size_t> place_of(unsigned char byte, std::string_view run, const Encoder& encoder, EncodeScratch& scratch) {
  std::vector<std::size_t> ends;
  encoder.pieces(run, ends);
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const std::string_view piece = run.substr(begin, end - begin);
    const std::size_t at = piece.find(static_cast<char>(byte));
    if (at != std::string_view::npos && !expressible(encoder, piece, scratch)) return begin + at;
    begin = end;
  }
  const std::size_t at = run.find(static_cast<char>(byte));
  return at == std::string_view::npos ? std::nullopt : std::optional(at);
}

}  // namespace

struct Tokenizer::State {
  State(const TokenizerParts& parts, const TokenizerOptions& options, PreChoice pre)
      : vocab(parts.tokens, parts.types, form_of(parts, pre)),
        specials(vocab, strips_of(parts)),
        bos(parts.bos),
        eos(parts.eos),
        leading(parts.add_bos ? parts.bos : std::nullopt),
        trailing(parts.add_eos ? parts.eos : std::nullopt),
        space_prefix(parts.model == "llama" && parts.add_space_prefix),
        end_tokens(end_tokens_of(parts)),
        pre_mismatch(std::move(pre.mismatch)) {
    const Token unknown = unknown_of(parts, options);
    skips = unknown == kSkipToken;
    if (parts.model == "llama") {
      encoder = std::make_unique<SpmEncoder>(vocab, parts.scores, parts.add_space_prefix, unknown);
    } else {
      encoder = std::make_unique<BpeEncoder>(vocab, parts.merges, pre.rules, pre.traits, unknown);
    }
  }

  void encode(std::string_view text, std::span<const TrustedRange> trusted, std::vector<Token>& out) {
    if (text.size() >= std::numeric_limits<std::uint32_t>::max())
      throw_bad_request("a text of 4 GiB or more cannot be encoded in one call");
    std::vector<Fragment> fragments;
    specials.partition(text, trusted, fragments);
    const BorrowedScratch scratch(pool);
    // Room for one id a byte: growing would copy, and what no id reaches is never touched.
    out.reserve(out.size() + text.size() + fragments.size());
    const auto old = static_cast<std::ptrdiff_t>(out.size());
    bool after_special = true;
    for (const Fragment& fragment : fragments) {
      if (fragment.token != kNoToken) {
        out.push_back(fragment.token);
      } else {
        encode_run(text, fragment, after_special, *scratch, out);
      }
      after_special = fragment.token != kNoToken;
    }
    if (!skips) return;
    const auto end = std::remove(out.begin() + old, out.end(), kSkipToken);
    if (end == out.end()) return;
    out.erase(end, out.end());
    warn_of_skipped_bytes(vocab, text);
  }

  /// Throws InexpressibleByte with its offset in `text`.
  void encode_run(std::string_view text, const Fragment& fragment, bool after_special, EncodeScratch& scratch, std::vector<Token>& out) {
    const std::string_view run = text.substr(fragment.begin, fragment.end - fragment.begin);
    try {
      encoder->encode(run, after_special, scratch, out);
    } catch (const InexpressibleByte& error) {
      const auto place = place_of(error.byte(), run, *encoder, scratch);
      throw InexpressibleByte(error.byte(), place ? std::optional(fragment.begin + *place) : std::nullopt);
    }
  }

  Vocab vocab;
  SpecialTokens specials;
  std::unique_ptr<Encoder> encoder;
  std::optional<Token> bos;
  std::optional<Token> eos;
  std::optional<Token> leading;   ///< what encode puts before a text: BOS, where the file asks for it
  std::optional<Token> trailing;  ///< and behind it
  bool space_prefix;
  bool skips = false;  ///< bytes that the vocabulary cannot express
  std::vector<Token> end_tokens;
  std::optional<std::string> pre_mismatch;
  ScratchPool pool;
};

std::unique_ptr<Tokenizer> Tokenizer::from_metadata(const gguf::Metadata& metadata, const TokenizerOptions& options) {
  return from_parts(tokenizer_parts_from(metadata, options), options);
}

std::unique_ptr<Tokenizer> Tokenizer::from_parts(TokenizerParts parts, const TokenizerOptions& options) {
  complete_parts(parts);
  if (parts.model == "gemma4") parts.pre = "gemma4";
  const bool has_pre = parts.model != "llama";
  if (!has_pre && !options.pre_override.empty()) {
    throw_bad_request("pre-tokenizer " + options.pre_override + ": a SentencePiece vocabulary has none that could be replaced");
  }
  PreChoice pre = has_pre ? choose_pre(parts, options) : PreChoice{};
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::make_unique<State>(parts, options, std::move(pre))));
}

InexpressibleByte::InexpressibleByte(unsigned char byte, std::optional<std::size_t> offset)
    : Error(ErrorKind::kBadRequest, "the text cannot be encoded: the vocabulary has neither a token for its byte " + byte_escape(byte) +
                                        (offset ? " at offset " + std::to_string(*offset) : "") + " nor an unknown token"),
      byte_(byte),
      offset_(offset) {}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  std::vector<Token> ids;
  if (state_->leading) ids.push_back(*state_->leading);
  const TrustedRange all{0, text.size()};
  state_->encode(text, {&all, 1}, ids);
  if (state_->trailing) ids.push_back(*state_->trailing);
  return ids;
}

std::vector<Token> Tokenizer::with_bos_eos(std::vector<Token> tokens) const {
  if (state_->leading) tokens.insert(tokens.begin(), *state_->leading);
  if (state_->trailing) tokens.push_back(*state_->trailing);
  return tokens;
}

std::vector<Token> Tokenizer::encode_raw(std::string_view text, Specials specials) const {
  std::vector<Token> ids;
  const TrustedRange all{0, text.size()};
  state_->encode(text, {&all, specials == Specials::kRecognise ? std::size_t{1} : 0}, ids);
  return ids;
}

std::vector<Token> Tokenizer::encode_spans(std::span<const TextSpan> spans) const {
  std::string text;
  std::vector<TrustedRange> trusted;
  for (const TextSpan& span : spans) {
    const std::size_t begin = text.size();
    text += span.text;
    if (span.specials != Specials::kRecognise || span.text.empty()) continue;
    if (!trusted.empty() && trusted.back().end == begin) {
      trusted.back().end = text.size();
    } else {
      trusted.push_back({begin, text.size()});
    }
  }
  std::vector<Token> ids;
  try {
    state_->encode(text, trusted, ids);
  } catch (const InexpressibleByte& error) {
    if (!error.offset()) throw;
    // Whoever wrote one span knows nothing of those before it.
    std::size_t place = *error.offset();
    for (const TextSpan& span : spans) {
      if (place < span.text.size()) throw InexpressibleByte(error.byte(), place);
      place -= span.text.size();
    }
    throw;
  }
  return ids;
}

std::vector<std::string_view> Tokenizer::chunks(std::string_view text) const {
  std::vector<std::size_t> ends;
  state_->encoder->pieces(text, ends);
  std::vector<std::string_view> chunks;
  chunks.reserve(ends.size());
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    chunks.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return chunks;
}

std::string Tokenizer::token_bytes(Token token, bool with_specials) const {
  if (token >= vocab_size() || (!with_specials && !state_->vocab.is_text(token))) return {};
  return std::string(state_->vocab.bytes(token));
}

std::string Tokenizer::decode(std::span<const Token> tokens, bool with_specials) const {
  std::string text;
  bool after_special = true;
  for (const Token token : tokens) {
    const std::string bytes = token_bytes(token, with_specials);
    const TokenType type = token_type(token);
    const bool special = type == TokenType::kControl || type == TokenType::kUserDefined;
    const bool drop_prefix = state_->space_prefix && after_special && !special && bytes.starts_with(' ');
    text.append(bytes, drop_prefix ? 1 : 0);
    after_special = special;
  }
  return text;
}

std::size_t Tokenizer::vocab_size() const noexcept { return state_->vocab.size(); }

std::string_view Tokenizer::token_text(Token token) const { return token < vocab_size() ? state_->vocab.text(token) : std::string_view(); }

TokenType Tokenizer::token_type(Token token) const { return token < vocab_size() ? state_->vocab.type(token) : TokenType::kUndefined; }

std::optional<Token> Tokenizer::find_token(std::string_view text) const {
  const Token token = state_->vocab.find(text);
  return token == kNoToken ? std::nullopt : std::optional(token);
}

std::optional<Token> Tokenizer::bos() const noexcept { return state_->bos; }
std::optional<Token> Tokenizer::eos() const noexcept { return state_->eos; }
bool Tokenizer::adds_bos() const noexcept { return state_->leading.has_value(); }
bool Tokenizer::adds_eos() const noexcept { return state_->trailing.has_value(); }
const std::vector<Token>& Tokenizer::end_tokens() const noexcept { return state_->end_tokens; }
const std::optional<std::string>& Tokenizer::pre_mismatch() const noexcept { return state_->pre_mismatch; }

}  // namespace quench
