#include "text/tokenizer_loader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/error.h"
#include "gguf/metadata.h"
#include "text/pretokenizer.h"

namespace quench {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

std::string key_of(std::string_view name) { return std::string(kPrefix) += name; }

// Texts that end a turn or the text wherever a vocabulary holds them, as llama.cpp collects them.
constexpr std::array<std::string_view, 22> kEndTexts = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
    "[e~[",
};

constexpr std::string_view kMaskText = "<mask>";
constexpr std::string_view kMaskBertText = "[MASK]";
constexpr std::string_view kPlamoEndText = "<|plamo:eos|>";

// Fill-in-the-middle tokens that end the text, and those that only mark parts of it. They are found by text where no key names them.
struct MiddleTokens {
  std::string_view key;
  bool ends;
  std::array<std::string_view, 8> texts;
};
constexpr std::array<MiddleTokens, 6> kMiddleTokens = {{
    {"fim_pre_token_id",
     false,
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>",
      "<\xEF\xBD\x9C"
      "fim\xE2\x96\x81"
      "begin\xEF\xBD\x9C>",
      "<PRE>", "\xE2\x96\x81<PRE>", "<|code_prefix|>", "<|prefix|>"}},
    {"fim_suf_token_id",
     false,
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",
      "<\xEF\xBD\x9C"
      "fim\xE2\x96\x81hole\xEF\xBD\x9C>",
      "<SUF>", "\xE2\x96\x81<SUF>", "<|code_suffix|>", "<|suffix|>"}},
    {"fim_mid_token_id",
     false,
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>",
      "<\xEF\xBD\x9C"
      "fim\xE2\x96\x81"
      "end\xEF\xBD\x9C>",
      "<MID>", "\xE2\x96\x81<MID>", "<|code_middle|>", "<|middle|>"}},
    {"fim_pad_token_id", true, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {"fim_rep_token_id", true, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {"fim_sep_token_id", true, {"<|file_sep|>"}},
}};

/// The known texts that this vocabulary holds, with their ids (of duplicates, the lowest).
using KnownIds = std::unordered_map<std::string_view, Token>;

KnownIds known_ids_of(const std::vector<std::string>& tokens) {
  std::unordered_set<std::string_view> known(kEndTexts.begin(), kEndTexts.end());
  known.insert({kMaskText, kMaskBertText, kPlamoEndText});
  for (const MiddleTokens& middle : kMiddleTokens) known.insert(middle.texts.begin(), middle.texts.end());
  known.erase(std::string_view());
  KnownIds ids;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string& text = tokens[i];
    // All of them begin with one of these: a cheap test for a quarter of a million entries.
    if (text.empty() || std::string_view("<[_\xE2").find(text[0]) == std::string_view::npos || !known.contains(text)) continue;
    ids.emplace(text, static_cast<Token>(i));
  }
  return ids;
}

bool looks_special(std::string_view text) { return text.size() >= 4 && text.starts_with("<|") && text.ends_with("|>"); }

bool is_byte_escape(std::string_view text) {
  const auto hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && hex(text[3]) && hex(text[4]);
}

/// Reads keys into parts, with the defaults of the model kind.
class Loader {
 public:
  Loader(const gguf::Metadata& metadata, const TokenizerOptions& options) : metadata_(metadata), options_(options) {}

  TokenizerParts load() {
    read_kind();
    parts_.tokens = *required_strings("tokens");
    read_types();
    read_scores();
    read_merges();
    read_ids();
    read_policy();
    read_strips();
    return std::move(parts_);
  }

 private:
  void read_kind() {
    const std::string* model = metadata_.string_at(key_of("model"));
    if (model == nullptr) throw_bad_file(key_of("model") + " is missing: this file holds no vocabulary");
    parts_.model = *model;
    require_known_kind(parts_.model);
    const std::string* pre = metadata_.string_at(key_of("pre"));
    parts_.pre = pre != nullptr ? *pre : "";
    if (parts_.model == "gemma4") parts_.pre = "gemma4";
  }

 public:
  static void require_known_kind(const std::string& model) {
    if (model == "gpt2" || model == "llama" || model == "gemma4") return;
    throw_unsupported(key_of("model") + " is \"" + model + "\"; quench does gpt2 (byte-level BPE), llama (SentencePiece) and gemma4");
  }

 private:
  const std::vector<std::string>* required_strings(std::string_view name) const {
    const auto* strings = metadata_.strings_at(key_of(name));
    if (strings == nullptr) throw_bad_file(key_of(name) + " is missing");
    return strings;
  }

  void read_types() {
    const auto types = metadata_.integers_at(key_of("token_type"));
    if (!types) return;
    parts_.types.reserve(types->size());
    for (const std::int64_t type : *types) {
      if (type < 0 || type > static_cast<std::int64_t>(TokenType::kByte)) {
        throw_bad_file(key_of("token_type") + ": " + std::to_string(type) + " is no token type");
      }
      parts_.types.push_back(static_cast<TokenType>(type));
    }
    if (parts_.types.empty() && !parts_.tokens.empty()) throw_bad_file(key_of("token_type") + " is empty");
  }

  void read_scores() {
    const gguf::Value* value = metadata_.find(key_of("scores"));
    if (value == nullptr) return;
    const auto* array = std::get_if<gguf::Array>(value);
    if (array != nullptr && std::holds_alternative<std::vector<std::int32_t>>(*array)) {
      for (const std::int32_t score : std::get<std::vector<std::int32_t>>(*array)) parts_.scores.push_back(static_cast<float>(score));
    } else {
      parts_.scores = *metadata_.floats_at(key_of("scores"));
    }
    if (parts_.scores.empty() && !parts_.tokens.empty()) throw_bad_file(key_of("scores") + " is empty");
  }

  void read_merges() {
    if (parts_.model == "llama") return;
    // Kimi K2 writes its vocabulary without merges: every piece that is no token falls back to bytes.
    if (parts_.pre == "kimi-k2" && !metadata_.contains(key_of("merges"))) return;
    parts_.merges = *required_strings("merges");
  }

  std::optional<Token> id_at(std::string_view name) const {
    const auto id = metadata_.unsigned_at(key_of(name));
    if (!id) return std::nullopt;
    if (*id >= parts_.tokens.size()) {
      throw_bad_file(key_of(name) + " is " + std::to_string(*id) + ", and the vocabulary has " + std::to_string(parts_.tokens.size()) +
                     " tokens");
    }
    return static_cast<Token>(*id);
  }

  std::optional<Token> id_or(std::string_view name, Token fallback) const {
    const auto id = id_at(name);
    return id || fallback >= parts_.tokens.size() ? id : std::optional(fallback);
  }

  void read_ids() {
    const bool spm = parts_.model == "llama";
    parts_.bos = spm ? id_or("bos_token_id", 1) : id_at("bos_token_id");
    parts_.eos = spm ? id_or("eos_token_id", 2) : id_at("eos_token_id");
    parts_.unk = spm ? id_or("unknown_token_id", 0) : id_at("unknown_token_id");
    parts_.eot = id_at("eot_token_id");
    parts_.eom = id_at("eom_token_id");
    parts_.pad = id_at("padding_token_id");
    for (const MiddleTokens& middle : kMiddleTokens) {
      const auto id = id_at(middle.key);
      if (id && middle.ends) parts_.other_ends.push_back(*id);
    }
  }

  void read_policy() {
    const bool spm = parts_.model == "llama";
    const std::string& name = options_.pre_override.empty() ? parts_.pre : options_.pre_override;
    const PreTraits traits = spm ? PreTraits{} : pretokenizer_traits(name.empty() ? "default" : name);
    const auto add_bos = metadata_.bool_at(key_of("add_bos_token"));
    parts_.add_bos = add_bos.value_or(spm || traits.add_bos.value_or(false));
    parts_.add_eos = metadata_.bool_at(key_of("add_eos_token")).value_or(false);
    parts_.add_space_prefix = metadata_.bool_at(key_of("add_space_prefix")).value_or(spm);
    // Gemma 4 files say false and mean true; llama.cpp overrides them too.
    if (parts_.model == "gemma4") parts_.add_bos = true;
    if (!parts_.bos && !add_bos) parts_.add_bos = false;
  }

  /// No file says which specials swallow whitespace; llama.cpp goes by the model's name, and so does quench.
  void read_strips() {
    const KnownIds ids = known_ids_of(parts_.tokens);
    const std::string* name = metadata_.string_at("general.name");
    std::string lower = name != nullptr ? *name : "";
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto has = [](std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; };
    const auto mask = [&](std::string_view text) {
      if (const auto id = ids.find(text); id != ids.end()) parts_.strip_left.push_back(id->second);
    };
    if (has(parts_.pre, "jina-v2-de") || has(parts_.pre, "jina-v2-es") || has(parts_.pre, "jina-v2-code")) return mask(kMaskText);
    if (has(lower, "phi-3") || has(lower, "phi3")) return strip_right_of_specials();
    if (has(lower, "modern-bert")) mask(kMaskBertText);
  }

  void strip_right_of_specials() {
    for (std::size_t i = 0; i < parts_.types.size() && i < parts_.tokens.size(); ++i) {
      const TokenType type = parts_.types[i];
      const std::string& text = parts_.tokens[i];
      const bool special = type == TokenType::kControl || type == TokenType::kUserDefined || type == TokenType::kUnknown || text == "</s>";
      if (special && text != "<unk>" && text != "<s>" && text != "<|endoftext|>") parts_.strip_right.push_back(static_cast<Token>(i));
    }
  }

  const gguf::Metadata& metadata_;
  const TokenizerOptions& options_;
  TokenizerParts parts_;
};

void check_parts(const TokenizerParts& parts) {
  const std::size_t count = parts.tokens.size();
  if (count == 0) throw_bad_file(key_of("tokens") + " is empty");
  if (count >= (std::size_t{1} << 31)) throw_unsupported(key_of("tokens") + " has more than 2^31 entries");
  const auto same_length = [&](std::string_view name, std::size_t length) {
    if (length == 0 || length == count) return;
    throw_bad_file(key_of(name) + " has " + std::to_string(length) + " entries, and " + key_of("tokens") + " has " + std::to_string(count));
  };
  same_length("token_type", parts.types.size());
  same_length("scores", parts.scores.size());
  for (std::size_t i = 0; i < parts.scores.size(); ++i) {
    if (std::isnan(parts.scores[i])) throw_bad_file(key_of("scores") + ": entry " + std::to_string(i) + " is not a number");
  }
  const auto in_range = [&](std::string_view name, const std::optional<Token>& id) {
    if (!id || *id < count) return;
    throw_bad_file(key_of(name) + " is " + std::to_string(*id) + ", and the vocabulary has " + std::to_string(count) + " tokens");
  };
  in_range("bos_token_id", parts.bos);
  in_range("eos_token_id", parts.eos);
  in_range("eot_token_id", parts.eot);
  in_range("eom_token_id", parts.eom);
  in_range("unknown_token_id", parts.unk);
  in_range("padding_token_id", parts.pad);
  for (const Token id : parts.other_ends) in_range("eot_token_id", id);
  if (parts.add_bos && !parts.bos) throw_bad_file(key_of("add_bos_token") + " is true, and " + key_of("bos_token_id") + " is missing");
  if (parts.add_eos && !parts.eos) throw_bad_file(key_of("add_eos_token") + " is true, and " + key_of("eos_token_id") + " is missing");
}

void guess_types(TokenizerParts& parts) {
  parts.types.assign(parts.tokens.size(), TokenType::kNormal);
  const bool byte_escapes = parts.model != "gpt2";
  for (std::size_t i = 0; i < parts.tokens.size(); ++i) {
    if (looks_special(parts.tokens[i])) parts.types[i] = TokenType::kControl;
    if (byte_escapes && is_byte_escape(parts.tokens[i])) parts.types[i] = TokenType::kByte;
  }
  if (parts.model != "llama") return;
  for (const auto& id : {parts.bos, parts.eos}) {
    if (id) parts.types[*id] = TokenType::kControl;
  }
  if (parts.unk) parts.types[*parts.unk] = TokenType::kUnknown;
}

}  // namespace

TokenizerParts tokenizer_parts_from(const gguf::Metadata& metadata, const TokenizerOptions& options) {
  return Loader(metadata, options).load();
}

void complete_parts(TokenizerParts& parts) {
  Loader::require_known_kind(parts.model);
  check_parts(parts);
  if (parts.types.empty()) guess_types(parts);
  if (parts.scores.empty()) parts.scores.assign(parts.tokens.size(), 0.0f);
  const KnownIds ids = known_ids_of(parts.tokens);
  const auto make_control = [&](std::string_view text) {
    const auto id = ids.find(text);
    if (text.empty() || id == ids.end()) return;
    // A file that marks such a token as user-defined or normal would let any text end a turn.
    parts.types[id->second] = TokenType::kControl;
  };
  for (const std::string_view text : kEndTexts) make_control(text);
  for (const MiddleTokens& middle : kMiddleTokens) {
    for (const std::string_view text : middle.texts) make_control(text);
  }
  // Beside Gemma 4's and PLaMo's own markers, "</s>" is the text of a closing strike-through tag.
  const auto strike = ids.find("</s>");
  if (strike != ids.end() && (ids.contains("<|tool_response>") || ids.contains(kPlamoEndText))) {
    parts.types[strike->second] = TokenType::kNormal;
  }
}

std::vector<Token> end_tokens_of(const TokenizerParts& parts) {
  const KnownIds ids = known_ids_of(parts.tokens);
  std::vector<Token> ends = parts.other_ends;
  for (const auto& id : {parts.eos, parts.eot, parts.eom}) {
    if (id) ends.push_back(*id);
  }
  const bool harmony = ids.contains("<|return|>") && ids.contains("<|call|>");
  const bool solar = ids.contains("<|flush|>") && (ids.contains("<|call|>") || ids.contains("<|calls|>"));
  for (const std::string_view text : kEndTexts) {
    const auto id = ids.find(text);
    if (id == ids.end() || parts.types[id->second] != TokenType::kControl) continue;
    if (text == "<|end|>" && (harmony || solar)) continue;  // ends a channel, not the turn
    ends.push_back(id->second);
  }
  for (const MiddleTokens& middle : kMiddleTokens) {
    const auto present =
        std::find_if(middle.texts.begin(), middle.texts.end(), [&](std::string_view text) { return !text.empty() && ids.contains(text); });
    if (middle.ends && present != middle.texts.end()) ends.push_back(ids.at(*present));
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

}  // namespace quench
