#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace quench {

/// The rule set that cuts text into the pieces which merges never cross. One entry per distinct rule set; several
/// `tokenizer.ggml.pre` names share one, as in llama.cpp (the names are in pretokenizer.cpp, the rules in pretokenizer_rules.cpp, and in
/// words in docs/tokenizer.md).
enum class PreTokenizer : std::uint8_t {
  kDefault,
  kLlama3,
  kJais2,
  kDeepseekLlm,
  kDeepseekCoder,
  kDeepseekV3,
  kSpark,
  kYoutu,
  kFalcon,
  kStarcoder,
  kGpt2,
  kQwen2,
  kQwen35,
  kBloom,
  kViking,
  kTekken,
  kChameleon,
  kGpt4o,
  kGraniteMultilingual,
  kTinyAya,
  kKimiK2,
  kSuperbpe,
  kSeedCoder,
  kUfakzeka,
  kAfmoe,
  kLaguna,
  kExaoneMoe,
  kGemma4,
  kMinicpm5,
  kWhitespace,
};

/// What else a `tokenizer.ggml.pre` name decides, unless the file's own keys say otherwise.
struct PreTraits {
  bool ignore_merges = false;            ///< a piece that is a vocabulary entry is that token, whatever the merges say
  std::optional<bool> add_bos = {};      ///< the default of tokenizer.ggml.add_bos_token, where the name sets one
  bool add_sep = false;                  ///< the default of tokenizer.ggml.add_sep_token
  bool no_default_bos = false;           ///< no BOS unless tokenizer.ggml.bos_token_id names it
  bool clean_spaces = true;              ///< detokenizing removes the space before punctuation
  bool byte_encode = true;               ///< vocabulary entries are in GPT-2's byte alphabet; false: raw UTF-8 with <0xXX> bytes
  bool escape_whitespaces = false;       ///< spaces become U+2581 before anything else
  bool newline_runs_are_tokens = false;  ///< a piece of newlines that is a vocabulary entry is that token (gemma4)
};

/// The rule set for a `tokenizer.ggml.pre` name, or nothing when it is unknown.
[[nodiscard]] std::optional<PreTokenizer> pretokenizer_from_name(std::string_view pre) noexcept;
/// The name that stands for a rule set in messages.
[[nodiscard]] std::string_view pretokenizer_name(PreTokenizer pre) noexcept;
/// Every known `tokenizer.ggml.pre` name, aliases included.
[[nodiscard]] std::span<const std::string_view> pretokenizer_names() noexcept;
/// The traits of a name; those of an unknown name are the fallback's (qwen2's).
[[nodiscard]] PreTraits pretokenizer_traits(std::string_view pre) noexcept;

/// The rules that serve where the name is unknown: qwen2's.
[[nodiscard]] PreTokenizer fallback_pretokenizer() noexcept;
/// The rules for a file with no name at all: llama.cpp's default.
[[nodiscard]] PreTokenizer default_pretokenizer() noexcept;

/// Cuts `text` into consecutive pieces and appends the end offset of each to `ends`; every byte is in exactly one piece, and no piece is
/// empty. Linear in the length, no recursion. Malformed UTF-8: each undecodable byte is one code point of no class. Token ids after
/// merging equal llama.cpp's on valid UTF-8.
void pretokenize(PreTokenizer pre, std::string_view text, std::vector<std::size_t>& ends);

}  // namespace quench
