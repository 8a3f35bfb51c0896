#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/token.h"

namespace quench {

namespace gguf {
class Metadata;
}

struct TokenizerOptions {
  std::string pre_override = {};  ///< --pre NAME; empty = what the file says
  bool strict = false;            ///< an unknown pre-tokenizer is Error(kUnsupported) instead of a warning
  /// A byte for which the vocabulary has neither a token nor an unknown token is left out, with a warning for each text that loses some,
  /// instead of being Error(kBadRequest). For comparing ids with llama.cpp, which leaves it out in silence.
  bool skip_inexpressible = false;
};

/// What a tokenizer is built from when there is no file.
struct TokenizerParts {
  std::string model = "gpt2";  ///< gpt2 (byte-level BPE), llama (SentencePiece), gemma4
  std::string pre = "qwen2";   ///< empty: the file names none, llama.cpp's default rules serve
  std::vector<std::string> tokens;
  std::vector<TokenType> types;     ///< empty: specials are <|...|> tokens
  std::vector<std::string> merges;  ///< "left right", best first
  std::vector<float> scores;        ///< empty: all 0
  std::optional<Token> bos, eos, eot, eom, unk, pad;
  std::vector<Token> other_ends;  ///< more tokens that end the text
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = true;  ///< model "llama" only
  /// Tokens that swallow the whitespace before or after them when recognised.
  std::vector<Token> strip_left, strip_right;
};

/// Whether text may name special tokens.
enum class Specials {
  kRecognise,  ///< template literals, trusted text: "<|im_end|>" is one token
  kAsText      ///< what users write: never a control token
};

/// A run of text for encode_spans: consecutive spans are one run for the pre-tokenizer.
struct TextSpan {
  std::string_view text;
  Specials specials;
};

/// Text to ids and back, from a model's own vocabulary. Immutable after construction and safe to share between threads.
///
/// Ids equal llama.cpp's on valid UTF-8, with these exceptions, all of them deliberate:
/// - Untrusted text (kAsText) never becomes a control or unknown token, not even where merges could form one.
///   User-defined tokens are part of how a vocabulary writes plain text, and are recognised in any text, as in llama.cpp.
/// - gpt-oss's <|start|>, <|channel|>, <|message|>, <|constrain|> and <|end|> stay control tokens (llama.cpp lets any text name them).
/// - A byte is never dropped: a text that is no token becomes the tokens of its bytes, then the unknown token. A byte for which the
///   vocabulary has neither is Error(kBadRequest) naming the byte and its offset, unless the options say otherwise. A file's unknown
///   token that is a control token counts as none: no text, trusted or not, becomes a control token that it does not spell.
/// - Malformed UTF-8 keeps its bytes: decode gives back exactly what was encoded (llama.cpp puts U+FFFD). Not where the vocabulary
///   marks a byte's token as user-defined, which stands for its text: DeepSeek's for the bytes that no well-formed text holds.
class Tokenizer {
 public:
  /// Throws Error(kBadFile) naming the key that is missing or contradictory, Error(kUnsupported) for an unknown model kind.
  static std::unique_ptr<Tokenizer> from_metadata(const gguf::Metadata& metadata, const TokenizerOptions& options = {});
  static std::unique_ptr<Tokenizer> from_parts(TokenizerParts parts, const TokenizerOptions& options = {});

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// With the model's BOS/EOS policy; special tokens recognised.
  [[nodiscard]] std::vector<Token> encode(std::string_view text) const;
  /// Without that policy.
  [[nodiscard]] std::vector<Token> encode_raw(std::string_view text, Specials specials) const;
  /// Tokens without the policy, with it.
  [[nodiscard]] std::vector<Token> with_bos_eos(std::vector<Token> tokens) const;
  /// A rendered prompt: literals of the template recognise specials, message contents do not; the text between two template specials,
  /// literal and content together, is one run for the pre-tokenizer. A control token is recognised only where all of it is literal.
  /// No BOS/EOS policy.
  [[nodiscard]] std::vector<Token> encode_spans(std::span<const TextSpan> spans) const;
  /// The pre-tokenizer's pieces, as views into `text`; specials not recognised.
  [[nodiscard]] std::vector<std::string_view> chunks(std::string_view text) const;

  /// The bytes a token stands for. Control tokens give their text only with `with_specials`. An id outside the vocabulary gives
  /// nothing.
  [[nodiscard]] std::string token_bytes(Token token, bool with_specials) const;
  /// The bytes of all; the inverse of encode_raw, so a space prefix that encoding put at the start and after specials is taken away.
  [[nodiscard]] std::string decode(std::span<const Token> tokens, bool with_specials = true) const;

  [[nodiscard]] std::size_t vocab_size() const noexcept;
  [[nodiscard]] std::string_view token_text(Token token) const;                ///< as stored in the vocabulary; empty outside it
  [[nodiscard]] TokenType token_type(Token token) const;                       ///< kUndefined outside the vocabulary
  [[nodiscard]] std::optional<Token> find_token(std::string_view text) const;  ///< exact vocabulary entry, lowest id
  [[nodiscard]] std::optional<Token> bos() const noexcept;
  [[nodiscard]] std::optional<Token> eos() const noexcept;
  [[nodiscard]] bool adds_bos() const noexcept;
  [[nodiscard]] bool adds_eos() const noexcept;
  /// Every token that ends a turn or the text: eos, eot, eom, and the well-known markers that the vocabulary holds
  /// (<|im_end|>, <|eot_id|>, <end_of_turn>, <turn|>, <|endoftext|>, ...). Sorted.
  [[nodiscard]] const std::vector<Token>& end_tokens() const noexcept;
  /// The name in the file when its pre-tokenizer is unknown and the fallback rules serve instead.
  [[nodiscard]] const std::optional<std::string>& pre_mismatch() const noexcept;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quench
