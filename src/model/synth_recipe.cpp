#include "model/synth_recipe.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"

namespace quench {
namespace {

struct Row {
  std::string_view name;
  Format base;
  FileType type;
  bool is_format;  ///< the name alone means the pure format; the mix is called "<name>_mix"
};

constexpr std::array kRows = {
    Row{"F32", Format::kF32, FileType::kF32, true},          Row{"F16", Format::kF16, FileType::kF16, true},
    Row{"BF16", Format::kBF16, FileType::kBF16, true},       Row{"Q4_0", Format::kQ4_0, FileType::kQ4_0, true},
    Row{"Q4_1", Format::kQ4_1, FileType::kQ4_1, true},       Row{"Q5_0", Format::kQ5_0, FileType::kQ5_0, true},
    Row{"Q5_1", Format::kQ5_1, FileType::kQ5_1, true},       Row{"Q8_0", Format::kQ8_0, FileType::kQ8_0, true},
    Row{"Q2_K", Format::kQ2_K, FileType::kQ2_K, true},       Row{"Q2_K_S", Format::kQ2_K, FileType::kQ2_K_S, false},
    Row{"Q3_K", Format::kQ3_K, FileType::kQ3_K_M, true},     Row{"Q3_K_S", Format::kQ3_K, FileType::kQ3_K_S, false},
    Row{"Q3_K_M", Format::kQ3_K, FileType::kQ3_K_M, false},  Row{"Q3_K_L", Format::kQ3_K, FileType::kQ3_K_L, false},
    Row{"Q4_K", Format::kQ4_K, FileType::kQ4_K_M, true},     Row{"Q4_K_S", Format::kQ4_K, FileType::kQ4_K_S, false},
    Row{"Q4_K_M", Format::kQ4_K, FileType::kQ4_K_M, false},  Row{"Q5_K", Format::kQ5_K, FileType::kQ5_K_M, true},
    Row{"Q5_K_S", Format::kQ5_K, FileType::kQ5_K_S, false},  Row{"Q5_K_M", Format::kQ5_K, FileType::kQ5_K_M, false},
    Row{"Q6_K", Format::kQ6_K, FileType::kQ6_K, true},       Row{"IQ1_S", Format::kIq1_S, FileType::kIq1_S, true},
    Row{"IQ1_M", Format::kIq1_M, FileType::kIq1_M, true},    Row{"IQ2_XXS", Format::kIq2_XXS, FileType::kIq2_XXS, true},
    Row{"IQ2_XS", Format::kIq2_XS, FileType::kIq2_XS, true}, Row{"IQ2_S", Format::kIq2_S, FileType::kIq2_S, true},
    Row{"IQ2_M", Format::kIq2_S, FileType::kIq2_M, false},   Row{"IQ3_XXS", Format::kIq3_XXS, FileType::kIq3_XXS, true},
    Row{"IQ3_XS", Format::kIq3_S, FileType::kIq3_XS, false}, Row{"IQ3_S", Format::kIq3_S, FileType::kIq3_S, true},
    Row{"IQ3_M", Format::kIq3_S, FileType::kIq3_M, false},   Row{"IQ4_NL", Format::kIq4_NL, FileType::kIq4_NL, true},
    Row{"IQ4_XS", Format::kIq4_XS, FileType::kIq4_XS, true}, Row{"TQ1_0", Format::kTq1_0, FileType::kTq1_0, true},
    Row{"TQ2_0", Format::kTq2_0, FileType::kTq2_0, true},    Row{"MXFP4", Format::kMxfp4, FileType::kMxfp4, true},
    Row{"NVFP4", Format::kNvfp4, FileType::kNvfp4, true},    Row{"Q1_0", Format::kQ1_0, FileType::kQ1_0, true},
    Row{"Q2_0", Format::kQ2_0, FileType::kQ2_0, true},
};

constexpr std::string_view kMixSuffix = "_MIX";

bool is_one_of(FileType type, std::initializer_list<FileType> types) { return std::ranges::find(types, type) != types.end(); }

/// Two bits and less, where nearly everything but the bulk gets more.
bool is_very_low(FileType type) {
  return is_one_of(type, {FileType::kIq1_S, FileType::kIq1_M, FileType::kIq2_XXS, FileType::kIq2_XS, FileType::kIq2_S, FileType::kIq2_M});
}

bool is_iq2_s_or_m(FileType type) { return is_one_of(type, {FileType::kIq2_S, FileType::kIq2_M}); }

/// The first and last eighth of the layers, and every third between.
bool is_important_layer(int layer, int n_layers) {
  return layer < n_layers / 8 || layer >= 7 * n_layers / 8 || (layer - n_layers / 8) % 3 == 2;
}

std::uint64_t block_elements(Format format) { return static_cast<std::uint64_t>(format_info(format).block_elements); }

Format head_format(FileType type, Format base, const TensorPlace& place) {
  if (place.columns % block_elements(base) != 0) return Format::kQ8_0;
  if (is_very_low(type) || type == FileType::kIq3_XXS) return Format::kQ5_K;
  return base == Format::kQ8_0 ? Format::kQ8_0 : Format::kQ6_K;
}

Format embedding_format(FileType type, Format base) {
  if (is_one_of(type, {FileType::kIq2_XXS, FileType::kIq2_XS, FileType::kIq1_S, FileType::kIq1_M})) return Format::kQ2_K;
  if (is_one_of(type, {FileType::kIq2_S, FileType::kIq2_M, FileType::kIq3_XXS})) return Format::kIq3_S;
  if (is_one_of(type, {FileType::kTq1_0, FileType::kTq2_0, FileType::kQ2_0})) return Format::kQ4_K;
  return base;
}

Format very_low_format(FileType type, Format base, const TensorPlace& place) {
  const Format raised = is_iq2_s_or_m(type) ? Format::kIq3_S : Format::kQ2_K;
  switch (place.role) {
    case TensorRole::kValue: return place.heads_per_kv_head >= 4 ? Format::kQ4_K : raised;
    case TensorRole::kDown: return place.layer < place.n_layers / 8 ? raised : base;
    case TensorRole::kAttentionOutput:
      if (is_one_of(type, {FileType::kIq1_S, FileType::kIq1_M})) return Format::kIq2_XXS;
      return is_iq2_s_or_m(type) ? Format::kIq3_S : base;
    default: return base;
  }
}

Format value_format(FileType type, Format base, const TensorPlace& place) {
  const bool shared = place.heads_per_kv_head >= 4;  // few value heads: their bits cost little
  switch (type) {
    case FileType::kQ2_K: return shared ? Format::kQ4_K : Format::kQ3_K;
    case FileType::kQ2_K_S:
    case FileType::kIq3_XS:
    case FileType::kIq3_S: return shared ? Format::kQ4_K : base;
    case FileType::kIq3_XXS: return shared ? Format::kQ4_K : Format::kIq3_S;
    case FileType::kIq3_M: return Format::kQ4_K;
    case FileType::kQ3_K_M: return place.layer < 2 ? Format::kQ5_K : Format::kQ4_K;
    case FileType::kQ3_K_L: return Format::kQ5_K;
    case FileType::kIq4_NL:
    case FileType::kIq4_XS: return shared ? Format::kQ5_K : base;
    case FileType::kQ4_K_M:
    case FileType::kQ5_K_M: return is_important_layer(place.layer, place.n_layers) ? Format::kQ6_K : base;
    case FileType::kQ4_K_S: return place.layer < 4 ? Format::kQ5_K : base;
    default: return base;
  }
}

Format down_format(FileType type, Format base, const TensorPlace& place) {
  const bool first_eighth = place.layer < place.n_layers / 8;
  switch (type) {
    case FileType::kQ2_K: return Format::kQ3_K;
    case FileType::kQ2_K_S: return first_eighth ? Format::kQ4_K : base;
    case FileType::kIq3_XXS: return first_eighth ? Format::kQ4_K : Format::kQ3_K;
    case FileType::kQ3_K_M: return place.layer < place.n_layers / 16 ? Format::kQ5_K : Format::kQ4_K;
    case FileType::kIq3_M: return first_eighth ? Format::kQ4_K : base;
    case FileType::kQ3_K_L: return Format::kQ5_K;
    case FileType::kQ4_K_M:
    case FileType::kQ5_K_M: return is_important_layer(place.layer, place.n_layers) ? Format::kQ6_K : base;
    case FileType::kIq4_NL:
    case FileType::kIq4_XS:
    case FileType::kQ4_K_S: return first_eighth ? Format::kQ5_K : base;
    default: return base;
  }
}

Format attention_output_format(FileType type, Format base) {
  switch (type) {
    case FileType::kQ2_K: return Format::kQ3_K;
    case FileType::kIq3_XXS: return Format::kIq3_S;
    case FileType::kQ3_K_M:
    case FileType::kIq3_M: return Format::kQ4_K;
    case FileType::kQ3_K_L: return Format::kQ5_K;
    default: return base;
  }
}

Format query_or_key_format(FileType type, Format base) {
  if (type == FileType::kIq3_XS) return Format::kIq3_XXS;
  return type == FileType::kIq3_XXS ? Format::kIq2_S : base;
}

Format gate_or_up_format(FileType type, Format base, const TensorPlace& place) {
  const bool middle = place.layer >= place.n_layers / 8 && place.layer < 7 * place.n_layers / 8;
  return type == FileType::kIq3_XS && middle ? Format::kIq3_XXS : base;
}

Format mixed_format(FileType type, Format base, const TensorPlace& place) {
  if (place.role == TensorRole::kHead || (place.role == TensorRole::kEmbedding && place.tied)) return head_format(type, base, place);
  if (place.role == TensorRole::kEmbedding) return embedding_format(type, base);
  if (is_very_low(type)) return very_low_format(type, base, place);
  switch (place.role) {
    case TensorRole::kValue: return value_format(type, base, place);
    case TensorRole::kDown: return down_format(type, base, place);
    case TensorRole::kAttentionOutput: return attention_output_format(type, base);
    case TensorRole::kQuery:
    case TensorRole::kKey: return query_or_key_format(type, base);
    case TensorRole::kGate:
    case TensorRole::kUp: return gate_or_up_format(type, base, place);
    default: return base;
  }
}

/// For rows that are no whole number of blocks: about the same bits in smaller blocks, or else f16.
Format fitting_format(Format wanted, std::uint64_t columns) {
  if (columns % block_elements(wanted) == 0) return wanted;
  Format smaller = wanted;
  switch (wanted) {
    case Format::kIq1_S:
    case Format::kIq1_M:
    case Format::kIq2_XXS:
    case Format::kIq2_XS:
    case Format::kIq2_S:
    case Format::kIq3_XXS:
    case Format::kIq3_S:
    case Format::kIq4_XS: smaller = Format::kIq4_NL; break;
    case Format::kQ1_0:
    case Format::kQ2_0:
    case Format::kQ2_K:
    case Format::kQ3_K:
    case Format::kTq1_0:
    case Format::kTq2_0:
    case Format::kNvfp4: smaller = Format::kQ4_0; break;
    case Format::kQ4_K: smaller = Format::kQ5_0; break;
    case Format::kQ5_K: smaller = Format::kQ5_1; break;
    case Format::kQ6_K: smaller = Format::kQ8_0; break;
    default: break;
  }
  return columns % block_elements(smaller) == 0 ? smaller : Format::kF16;
}

/// llama.cpp has no rules for dense models in the four-bit float formats.
bool has_mix_of_its_name(const Row& row) {
  return row.is_format && format_info(row.base).arithmetic != Arithmetic::kFloat &&
         !is_one_of(row.type, {FileType::kMxfp4, FileType::kNvfp4});
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

}  // namespace

FormatRecipe FormatRecipe::named(std::string_view name) {
  const std::string wanted = upper(name);
  const bool asks_mix = wanted.ends_with(kMixSuffix);
  const std::string_view stem = std::string_view(wanted).substr(0, wanted.size() - (asks_mix ? kMixSuffix.size() : 0));
  const auto* row = std::ranges::find(kRows, stem, &Row::name);
  if (row == kRows.end() || (asks_mix && !has_mix_of_its_name(*row))) {
    std::string known;
    for (const std::string& each : names()) known += (known.empty() ? "" : " ") + each;
    throw_bad_request("synth: unknown format " + std::string(name) + "; there are " + known);
  }
  const bool mixed = asks_mix || !row->is_format;
  // llama.cpp's file type IQ2_S starts from the smaller format.
  const Format base = mixed && row->type == FileType::kIq2_S ? Format::kIq2_XS : row->base;
  return {std::string(row->name), base, row->type, mixed};
}

std::vector<std::string> FormatRecipe::names() {
  std::vector<std::string> all;
  all.reserve(2 * kRows.size());
  for (const Row& row : kRows) all.emplace_back(row.name);
  for (const Row& row : kRows) {
    if (has_mix_of_its_name(row)) all.push_back(std::string(row.name) + "_mix");
  }
  return all;
}

Format FormatRecipe::format_of(const TensorPlace& place) const {
  return fitting_format(mixed_ ? mixed_format(type_, base_, place) : base_, place.columns);
}

}  // namespace quench
