#include "model/synth_vocabulary.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "gguf/reader.h"

namespace quench {
namespace {

// tokenizer.ggml.token_type
constexpr std::int32_t kNormal = 1;
constexpr std::int32_t kUnknown = 2;
constexpr std::int32_t kControl = 3;
constexpr std::int32_t kUserDefined = 4;
constexpr std::int32_t kUnused = 5;
constexpr std::int32_t kByte = 6;

constexpr std::string_view kBpeSpace = "\u0120";  // what byte 0x20 is in byte-level BPE
constexpr std::string_view kSpmSpace = "\u2581";

/// By frequency in English, so that early merges are of pairs that text has.
constexpr std::string_view kLetters = "etaoinshrdlucmfwypvbgkjqxzTSAICMBPHWDRLFNEGOUYVJKQXZ";
constexpr std::size_t kMaxPieceBytes = 16;

constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
constexpr std::string_view kLlama3 =
    "{{ '<|begin_of_text|>' }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + "
    "message['content'] + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";
constexpr std::string_view kGemma =
    "{{ '<bos>' }}{% for message in messages %}{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + "
    "'\\n' + message['content'] + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif "
    "%}";

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;

  std::uint32_t add(std::string text, std::int32_t type, float score = 0.0f) {
    tokens.push_back(std::move(text));
    types.push_back(type);
    scores.push_back(score);
    return static_cast<std::uint32_t>(tokens.size() - 1);
  }
  [[nodiscard]] std::uint32_t find(std::string_view text) const {
    return static_cast<std::uint32_t>(std::ranges::find(tokens, text) - tokens.begin());
  }
};

std::string utf8(std::uint32_t code_point) {
  std::string text;
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  text += static_cast<char>(0xC0 | (code_point >> 6));
  text += static_cast<char>(0x80 | (code_point & 0x3F));
  return text;
}

/// The letter that stands for a byte in byte-level BPE: itself when it prints, else the next free one from U+0100 on (Radford et al. 2019).
std::vector<std::string> byte_letters() {
  std::vector<std::string> letters;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    letters.push_back(utf8(prints ? byte : next++));
  }
  return letters;
}

/// Makes new pieces by joining two older ones, at random but so that frequent letters and early pieces are favoured. Every piece can be
/// built from letters by the joins before it.
class PieceGrower {
 public:
  PieceGrower(std::string_view space, std::uint64_t seed) : space_(space), random_(seed) {
    pieces_.emplace_back(space);
    for (const char letter : kLetters) pieces_.emplace_back(1, letter);
    for (const std::string& piece : pieces_) known_.insert(piece);
  }

  struct Join {
    std::string left;
    std::string right;
  };

  Join next() {
    for (;;) {
      Join join{pick(), pick()};
      if (join.left.size() + join.right.size() > kMaxPieceBytes) continue;
      if (join.right.starts_with(space_)) continue;  // a space only leads
      std::string piece = join.left + join.right;
      if (!known_.insert(piece).second) continue;
      pieces_.push_back(std::move(piece));
      return join;
    }
  }

 private:
  const std::string& pick() {
    const double u = random_.uniform();
    return pieces_[static_cast<std::size_t>(u * u * static_cast<double>(pieces_.size()))];
  }

  std::string_view space_;
  Xoshiro256 random_;
  std::vector<std::string> pieces_;
  std::unordered_set<std::string> known_;
};

void add_merges(Vocabulary& vocabulary, std::uint64_t count, std::uint64_t seed) {
  PieceGrower grower(kBpeSpace, seed);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto [left, right] = grower.next();
    vocabulary.add(left + right, kNormal);
    vocabulary.merges.push_back(left + " " + right);
  }
}

void add_bytes(Vocabulary& vocabulary) {
  for (std::string& letter : byte_letters()) vocabulary.add(std::move(letter), kNormal);
}

void add_all(Vocabulary& vocabulary, std::initializer_list<std::string_view> texts, std::int32_t type) {
  for (const std::string_view text : texts) vocabulary.add(std::string(text), type);
}

void pad_to(Vocabulary& vocabulary, std::uint64_t n_vocab) {
  while (vocabulary.tokens.size() < n_vocab) vocabulary.add("[PAD" + std::to_string(vocabulary.tokens.size()) + "]", kUnused);
}

void put_common(gguf::Metadata& keys, Vocabulary&& vocabulary, std::string model, std::string pre, bool with_scores) {
  keys.add("tokenizer.ggml.model", std::move(model));
  keys.add("tokenizer.ggml.pre", std::move(pre));
  keys.add("tokenizer.ggml.tokens", gguf::Array(std::move(vocabulary.tokens)));
  if (with_scores) keys.add("tokenizer.ggml.scores", gguf::Array(std::move(vocabulary.scores)));
  keys.add("tokenizer.ggml.token_type", gguf::Array(std::move(vocabulary.types)));
  if (!vocabulary.merges.empty()) keys.add("tokenizer.ggml.merges", gguf::Array(std::move(vocabulary.merges)));
}

/// Qwen: bytes, merges, special tokens, and in full size unused ones up to the padded embedding.
gguf::Metadata qwen_vocabulary(std::uint64_t n_vocab, std::uint64_t seed) {
  constexpr std::uint64_t kSpecials = 26;
  constexpr std::uint64_t kFullSize = 151936;
  constexpr std::uint64_t kFullPads = 267;
  Vocabulary vocabulary;
  add_bytes(vocabulary);
  add_merges(vocabulary, n_vocab - 256 - kSpecials - (n_vocab == kFullSize ? kFullPads : 0), seed);
  add_all(vocabulary,
          {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
           "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"},
          kControl);
  add_all(vocabulary,
          {"<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
           "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"},
          kUserDefined);
  pad_to(vocabulary, n_vocab);
  const std::uint32_t end_of_text = vocabulary.find("<|endoftext|>");
  const std::uint32_t end_of_turn = vocabulary.find("<|im_end|>");
  gguf::Metadata keys;
  put_common(keys, std::move(vocabulary), "gpt2", "qwen2", false);
  keys.add("tokenizer.ggml.eos_token_id", end_of_turn);
  keys.add("tokenizer.ggml.padding_token_id", end_of_text);
  keys.add("tokenizer.ggml.bos_token_id", end_of_text);
  keys.add("tokenizer.ggml.add_bos_token", false);
  keys.add("tokenizer.chat_template", std::string(kChatMl));
  return keys;
}

/// SmolLM2: special tokens first.
gguf::Metadata smollm_vocabulary(std::uint64_t n_vocab, std::uint64_t seed) {
  Vocabulary vocabulary;
  add_all(vocabulary,
          {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>", "<gh_stars>"}, kControl);
  add_bytes(vocabulary);
  add_merges(vocabulary, n_vocab - vocabulary.tokens.size(), seed);
  gguf::Metadata keys;
  put_common(keys, std::move(vocabulary), "gpt2", "smollm", false);
  keys.add("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  keys.add("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  keys.add("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  keys.add("tokenizer.ggml.padding_token_id", std::uint32_t{2});
  keys.add("tokenizer.ggml.add_space_prefix", false);
  keys.add("tokenizer.ggml.add_bos_token", false);
  keys.add("tokenizer.chat_template", std::string(kChatMl));
  return keys;
}

/// Llama 3: 256 special tokens at the end, most of them reserved.
gguf::Metadata llama3_vocabulary(std::uint64_t n_vocab, std::uint64_t seed) {
  Vocabulary vocabulary;
  add_bytes(vocabulary);
  add_merges(vocabulary, n_vocab - 512, seed);
  add_all(
      vocabulary,
      {"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
       "<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"},
      kControl);
  for (int i = 3; vocabulary.tokens.size() < n_vocab; ++i) {
    vocabulary.add("<|reserved_special_token_" + std::to_string(i) + "|>", kControl);
  }
  const std::uint32_t begin = vocabulary.find("<|begin_of_text|>");
  const std::uint32_t end_of_turn = vocabulary.find("<|eot_id|>");
  gguf::Metadata keys;
  put_common(keys, std::move(vocabulary), "gpt2", "llama-bpe", false);
  keys.add("tokenizer.ggml.bos_token_id", begin);
  keys.add("tokenizer.ggml.eos_token_id", end_of_turn);
  keys.add("tokenizer.ggml.add_bos_token", true);
  keys.add("tokenizer.chat_template", std::string(kLlama3));
  return keys;
}

/// Gemma 3: SentencePiece; a piece's score falls with its age, and each is the join of two others.
gguf::Metadata gemma_vocabulary(std::uint64_t n_vocab, std::uint64_t seed) {
  constexpr float kNeverMerged = -1000.0f;
  Vocabulary vocabulary;
  for (const char* text : {"<pad>", "<eos>", "<bos>"}) vocabulary.add(text, kControl, kNeverMerged);
  vocabulary.add("<unk>", kUnknown, kNeverMerged);
  for (const char* text : {"<start_of_turn>", "<end_of_turn>"}) vocabulary.add(text, kControl, kNeverMerged);
  for (int byte = 0; byte < 256; ++byte) {
    std::array<char, 8> text{};
    (void)std::snprintf(text.data(), text.size(), "<0x%02X>", static_cast<unsigned>(byte));
    vocabulary.add(text.data(), kByte, kNeverMerged);
  }
  float score = 0.0f;
  const auto add_piece = [&](std::string text) { vocabulary.add(std::move(text), kNormal, score -= 1.0f); };
  add_piece(std::string(kSpmSpace));
  for (char c = '!'; c <= '~'; ++c) add_piece(std::string(1, c));
  add_piece("\n");
  PieceGrower grower(kSpmSpace, seed);
  while (vocabulary.tokens.size() < n_vocab) {
    const auto [left, right] = grower.next();
    add_piece(left + right);
  }
  gguf::Metadata keys;
  put_common(keys, std::move(vocabulary), "llama", "default", true);
  keys.add("tokenizer.ggml.bos_token_id", std::uint32_t{2});
  keys.add("tokenizer.ggml.eos_token_id", std::uint32_t{1});
  keys.add("tokenizer.ggml.unknown_token_id", std::uint32_t{3});
  keys.add("tokenizer.ggml.padding_token_id", std::uint32_t{0});
  keys.add("tokenizer.ggml.add_bos_token", true);
  keys.add("tokenizer.ggml.add_eos_token", false);
  keys.add("tokenizer.ggml.add_space_prefix", false);
  keys.add("tokenizer.chat_template", std::string(kGemma));
  return keys;
}

/// Lengthens an array of a copied tokenizer, where the file has it.
template <typename T>
void lengthen(gguf::Metadata& keys, std::string_view key, std::uint64_t n_vocab, const T& filler) {
  const gguf::Value* value = keys.find(key);
  if (value == nullptr) return;
  const auto* array = std::get_if<gguf::Array>(value);
  const auto* elements = array != nullptr ? std::get_if<std::vector<T>>(array) : nullptr;
  if (elements == nullptr) throw_bad_file("synth: " + std::string(key) + " is " + gguf::describe_type(*value) + ", cannot be lengthened");
  std::vector<T> longer = *elements;
  longer.resize(static_cast<std::size_t>(n_vocab), filler);
  keys.set(std::string(key), gguf::Array(std::move(longer)));
}

}  // namespace

gguf::Metadata generate_vocabulary(std::string_view family, std::uint64_t n_vocab, std::uint64_t seed) {
  constexpr std::uint64_t kLlama3Vocabulary = 100'000;
  if (n_vocab < kLeastSynthVocabulary || n_vocab > (std::uint64_t{1} << 20)) {
    throw_bad_request("synth: a vocabulary of " + std::to_string(n_vocab) + " entries; it takes " + std::to_string(kLeastSynthVocabulary) +
                      " to 1048576");
  }
  if (family == "gemma3") return gemma_vocabulary(n_vocab, seed);
  if (family == "llama") return n_vocab >= kLlama3Vocabulary ? llama3_vocabulary(n_vocab, seed) : smollm_vocabulary(n_vocab, seed);
  return qwen_vocabulary(n_vocab, seed);
}

gguf::Metadata copy_vocabulary(const std::filesystem::path& file, std::uint64_t least_entries) {
  const gguf::Reader reader(file);
  gguf::Metadata keys;
  for (const gguf::Metadata::Entry& entry : reader.metadata().entries()) {
    if (entry.key.starts_with("tokenizer.")) keys.add(entry.key, entry.value);
  }
  const std::vector<std::string>* tokens = keys.strings_at("tokenizer.ggml.tokens");
  if (tokens == nullptr || tokens->empty()) throw_bad_file(file.string() + ": has no tokenizer.ggml.tokens to copy");
  if (tokens->size() >= least_entries) return keys;
  std::vector<std::string> longer = *tokens;
  while (longer.size() < least_entries) longer.push_back("[PAD" + std::to_string(longer.size()) + "]");
  keys.set("tokenizer.ggml.tokens", gguf::Array(std::move(longer)));
  lengthen<std::int32_t>(keys, "tokenizer.ggml.token_type", least_entries, kUnused);
  lengthen<float>(keys, "tokenizer.ggml.scores", least_entries, -1000.0f);
  return keys;
}

std::uint64_t vocabulary_size(const gguf::Metadata& tokenizer) {
  const std::vector<std::string>* tokens = tokenizer.strings_at("tokenizer.ggml.tokens");
  return tokens != nullptr ? tokens->size() : 0;
}

}  // namespace quench
