#include "text/pretokenizer.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace quench {
namespace {

struct NamedRules {
  std::string_view name;
  PreTokenizer rules;
  PreTraits traits = {};
};

constexpr PreTraits kKeepsSpaces{.clean_spaces = false};
constexpr PreTraits kAddsSep{.add_sep = true};
constexpr PreTraits kWholePieces{.ignore_merges = true};
constexpr PreTraits kWholePiecesAndBos{.ignore_merges = true, .add_bos = true};

constexpr NamedRules kNames[] = {
    {"default", PreTokenizer::kDefault},
    {"minicpm5", PreTokenizer::kMinicpm5, kWholePieces},
    {"llama3", PreTokenizer::kLlama3, kWholePiecesAndBos},
    {"llama-v3", PreTokenizer::kLlama3, kWholePiecesAndBos},
    {"llama-bpe", PreTokenizer::kLlama3, kWholePiecesAndBos},
    {"falcon3", PreTokenizer::kLlama3, kWholePiecesAndBos},
    {"falcon-h1", PreTokenizer::kLlama3, kWholePiecesAndBos},
    {"pixtral", PreTokenizer::kLlama3, kWholePiecesAndBos},
    {"midm-2.0", PreTokenizer::kLlama3, kWholePiecesAndBos},
    {"lfm2", PreTokenizer::kLlama3, kWholePiecesAndBos},
    {"jina-v5-nano", PreTokenizer::kLlama3, kWholePiecesAndBos},
    {"dbrx", PreTokenizer::kLlama3},
    {"smaug-bpe", PreTokenizer::kLlama3},
    {"chatglm-bpe", PreTokenizer::kLlama3, {.no_default_bos = true}},
    {"glm4", PreTokenizer::kLlama3, {.ignore_merges = true, .no_default_bos = true}},
    {"glm5", PreTokenizer::kLlama3, {.ignore_merges = true, .no_default_bos = true}},
    {"jais-2", PreTokenizer::kJais2},
    {"deepseek-llm", PreTokenizer::kDeepseekLlm, kKeepsSpaces},
    {"deepseek-coder", PreTokenizer::kDeepseekCoder, kKeepsSpaces},
    {"deepseek-v3", PreTokenizer::kDeepseekV3, kKeepsSpaces},
    {"hunyuan-dense", PreTokenizer::kDeepseekV3, kKeepsSpaces},
    {"hy_v4", PreTokenizer::kDeepseekV3, kKeepsSpaces},
    {"joyai-llm", PreTokenizer::kDeepseekV3, kKeepsSpaces},
    {"spark2_5", PreTokenizer::kSpark, kKeepsSpaces},
    {"youtu", PreTokenizer::kYoutu, {.ignore_merges = true, .clean_spaces = false}},
    {"falcon", PreTokenizer::kFalcon},
    {"starcoder", PreTokenizer::kStarcoder},
    {"refact", PreTokenizer::kStarcoder},
    {"command-r", PreTokenizer::kStarcoder, kKeepsSpaces},
    {"smollm", PreTokenizer::kStarcoder, kKeepsSpaces},
    {"codeshell", PreTokenizer::kStarcoder},
    {"exaone", PreTokenizer::kStarcoder},
    {"minerva-7b", PreTokenizer::kStarcoder},
    {"mellum2", PreTokenizer::kStarcoder},
    {"gpt-2", PreTokenizer::kGpt2},
    {"phi-2", PreTokenizer::kGpt2},
    {"jina-es", PreTokenizer::kGpt2},
    {"jina-de", PreTokenizer::kGpt2},
    {"gigachat", PreTokenizer::kGpt2},
    {"jina-v2-es", PreTokenizer::kGpt2},
    {"jina-v2-de", PreTokenizer::kGpt2},
    {"a.x-4.0", PreTokenizer::kGpt2},
    {"mellum", PreTokenizer::kGpt2},
    {"modern-bert", PreTokenizer::kGpt2},
    {"jina-v1-en", PreTokenizer::kGpt2, kAddsSep},
    {"jina-v2-code", PreTokenizer::kGpt2, kAddsSep},
    {"roberta-bpe", PreTokenizer::kGpt2, kAddsSep},
    {"mpt", PreTokenizer::kGpt2},
    {"olmo", PreTokenizer::kGpt2},
    {"jais", PreTokenizer::kGpt2},
    {"exaone4", PreTokenizer::kGpt2},
    {"trillion", PreTokenizer::kGpt2, kKeepsSpaces},
    {"granite-docling", PreTokenizer::kGpt2, kKeepsSpaces},
    {"qwen2", PreTokenizer::kQwen2, kKeepsSpaces},
    {"deepseek-r1-qwen", PreTokenizer::kQwen2, kKeepsSpaces},
    {"kormo", PreTokenizer::kQwen2, kKeepsSpaces},
    {"f2llmv2", PreTokenizer::kQwen2, kKeepsSpaces},
    {"hunyuan", PreTokenizer::kQwen2, kKeepsSpaces},
    {"grok-2", PreTokenizer::kQwen2, kKeepsSpaces},
    {"solar-open", PreTokenizer::kQwen2, kKeepsSpaces},
    {"bailingmoe", PreTokenizer::kQwen2, kKeepsSpaces},
    {"bailingmoe2", PreTokenizer::kQwen2, kKeepsSpaces},
    {"llada-moe", PreTokenizer::kQwen2, kKeepsSpaces},
    {"stablelm2", PreTokenizer::kQwen2},
    {"megrez", PreTokenizer::kQwen2},
    {"qwen35", PreTokenizer::kQwen35, kKeepsSpaces},
    {"bloom", PreTokenizer::kBloom},
    {"gpt3-finnish", PreTokenizer::kBloom},
    {"poro-chat", PreTokenizer::kBloom, kKeepsSpaces},
    {"viking", PreTokenizer::kViking, kKeepsSpaces},
    {"tekken", PreTokenizer::kTekken, {.ignore_merges = true, .add_bos = true, .clean_spaces = false}},
    {"chameleon", PreTokenizer::kChameleon, {.add_bos = true, .clean_spaces = false}},
    {"gpt-4o", PreTokenizer::kGpt4o, kKeepsSpaces},
    {"llama4", PreTokenizer::kGpt4o, kKeepsSpaces},
    {"kanana2", PreTokenizer::kGpt4o, kKeepsSpaces},
    {"talkie", PreTokenizer::kGpt4o, kKeepsSpaces},
    {"minimax-m2", PreTokenizer::kGpt4o, kKeepsSpaces},
    {"granite-embed-multi-97m", PreTokenizer::kGraniteMultilingual, {.ignore_merges = true, .clean_spaces = false}},
    {"tiny_aya", PreTokenizer::kTinyAya, kKeepsSpaces},
    {"cohere2moe", PreTokenizer::kTinyAya, kKeepsSpaces},
    {"kimi-k2", PreTokenizer::kKimiK2, kKeepsSpaces},
    {"superbpe", PreTokenizer::kSuperbpe, kKeepsSpaces},
    {"seed-coder", PreTokenizer::kSeedCoder, kKeepsSpaces},
    {"ufakzeka", PreTokenizer::kUfakzeka, kKeepsSpaces},
    {"afmoe", PreTokenizer::kAfmoe, kKeepsSpaces},
    {"laguna", PreTokenizer::kLaguna, kKeepsSpaces},
    {"exaone-moe", PreTokenizer::kExaoneMoe},
    {"gemma4", PreTokenizer::kGemma4, {.byte_encode = false, .escape_whitespaces = true, .newline_runs_are_tokens = true}},
    {"granite-embed-multi-311m",
     PreTokenizer::kGemma4,
     {.byte_encode = false, .escape_whitespaces = true, .newline_runs_are_tokens = true}},
    {"sarvam-moe", PreTokenizer::kGemma4, {.clean_spaces = false, .byte_encode = false, .escape_whitespaces = true}},
    {"whitespace", PreTokenizer::kWhitespace, {.byte_encode = false}},
};

constexpr auto kNameList = [] {
  std::array<std::string_view, std::size(kNames)> list{};
  std::transform(std::begin(kNames), std::end(kNames), list.begin(), [](const NamedRules& row) { return row.name; });
  return list;
}();

const NamedRules* find_name(std::string_view pre) noexcept {
  const auto* row = std::find_if(std::begin(kNames), std::end(kNames), [pre](const NamedRules& each) { return each.name == pre; });
  return row == std::end(kNames) ? nullptr : row;
}

}  // namespace

std::optional<PreTokenizer> pretokenizer_from_name(std::string_view pre) noexcept {
  const NamedRules* row = find_name(pre);
  return row ? std::optional(row->rules) : std::nullopt;
}

std::span<const std::string_view> pretokenizer_names() noexcept { return kNameList; }

PreTraits pretokenizer_traits(std::string_view pre) noexcept {
  const NamedRules* row = find_name(pre);
  return row ? row->traits : find_name(pretokenizer_name(fallback_pretokenizer()))->traits;
}

PreTokenizer fallback_pretokenizer() noexcept { return PreTokenizer::kQwen2; }

PreTokenizer default_pretokenizer() noexcept { return PreTokenizer::kDefault; }

}  // namespace quench
