#include "text/tokenizer.h"

#include <algorithm>
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
    if (scratch->symbols.capacity() + scratch->ranges.capacity() + scratch->merge.heap.capacity() > kKeepElements) {
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

PreChoice choose_pre(const TokenizerParts& parts, const TokenizerOptions& options) {
  const bool overridden = !options.pre_override.empty();
  const std::string& name = overridden ? options.pre_override : parts.pre;
  if (name.empty()) {
    log_warning(
        "tokenizer.ggml.pre is missing: the default pre-tokenizer serves, and answers may be worse for it; --pre NAME sets another");
    return {default_pretokenizer(), pretokenizer_traits("default"), std::nullopt};
  }
  if (const auto rules = pretokenizer_from_name(name)) {
    const PreTraits traits = pretokenizer_traits(name);
    if (!traits.byte_encode && !traits.escape_whitespaces) {
      throw_unsupported("tokenizer.ggml.pre is \"" + name + "\", which drops whitespace; quench does not do it");
    }
    return {*rules, traits, std::nullopt};
  }
  if (overridden) throw_bad_request("\"" + name + "\" is no known pre-tokenizer");
  const std::string fallback(pretokenizer_name(fallback_pretokenizer()));
  const std::string message = "tokenizer.ggml.pre is \"" + name + "\", which is unknown";
  if (options.strict) throw_unsupported(message + "; --pre NAME names one to use instead");
  log_warning(message + ": the rules of " + fallback + " serve instead, and ids may be wrong; --pre NAME sets others");
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

void warn_of_skipped_bytes(const Vocab& vocab) {
  std::string missing;
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<unsigned char>(b);
    if (vocab.byte_token(byte) == kNoToken) missing.append(" ").append(byte_escape(byte));
  }
  if (missing.empty()) return;
  log_warning("the vocabulary has neither tokens for these bytes nor an unknown token, and texts lose them:" + missing);
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
    const Token unknown = parts.unk.value_or(options.skip_inexpressible ? kSkipToken : kNoToken);
    if (unknown == kSkipToken) warn_of_skipped_bytes(vocab);
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
    bool after_special = true;
    for (const Fragment& fragment : fragments) {
      if (fragment.token != kNoToken) {
        out.push_back(fragment.token);
      } else {
        encoder->encode(text.substr(fragment.begin, fragment.end - fragment.begin), after_special, *scratch, out);
      }
      after_special = fragment.token != kNoToken;
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
  PreChoice pre = parts.model == "llama" ? PreChoice{} : choose_pre(parts, options);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::make_unique<State>(parts, options, std::move(pre))));
}

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
  state_->encode(text, trusted, ids);
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
