#include "sample/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace quench {
namespace {

struct StageRow {
  SamplerStage stage;
  std::string_view name;
};

constexpr std::array kStages{
    StageRow{SamplerStage::kPenalties, "penalties"},
    StageRow{SamplerStage::kDry, "dry"},
    StageRow{SamplerStage::kTopNSigma, "top_n_sigma"},
    StageRow{SamplerStage::kTopK, "top_k"},
    StageRow{SamplerStage::kTypical, "typ_p"},
    StageRow{SamplerStage::kTopP, "top_p"},
    StageRow{SamplerStage::kMinP, "min_p"},
    StageRow{SamplerStage::kXtc, "xtc"},
    StageRow{SamplerStage::kTemperature, "temperature"},
};

constexpr std::array kAliases{
    StageRow{SamplerStage::kTypical, "typical"}, StageRow{SamplerStage::kTypical, "typical_p"}, StageRow{SamplerStage::kTypical, "typ"},
    StageRow{SamplerStage::kTopP, "nucleus"},    StageRow{SamplerStage::kTemperature, "temp"},
};

constexpr std::array kLlamaOrder{SamplerStage::kPenalties, SamplerStage::kDry,     SamplerStage::kTopNSigma,
                                 SamplerStage::kTopK,      SamplerStage::kTypical, SamplerStage::kTopP,
                                 SamplerStage::kMinP,      SamplerStage::kXtc,     SamplerStage::kTemperature};

constexpr std::array kTemperatureFirst{SamplerStage::kPenalties, SamplerStage::kTopK, SamplerStage::kTemperature, SamplerStage::kTopP,
                                       SamplerStage::kMinP};

SamplerStage stage_from_name(std::string_view name) {
  std::string spelt(name);
  std::ranges::replace(spelt, '-', '_');
  for (const auto& row : kStages) {
    if (row.name == spelt) return row.stage;
  }
  for (const auto& row : kAliases) {
    if (row.name == spelt) return row.stage;
  }
  std::string names;
  for (const auto& row : kStages) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  throw_bad_request(fmt::format("samplers: there is no '{}'; there are {}", name, names));
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

void check_range(std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return;
  if (low == std::numeric_limits<double>::lowest()) throw_bad_request(fmt::format("{} is {}; it must be a finite number", name, value));
  if (high == std::numeric_limits<double>::max())
    throw_bad_request(fmt::format("{} is {}; it must be finite and at least {}", name, value, low));
  throw_bad_request(fmt::format("{} is {}; it must be between {} and {}", name, value, low, high));
}

void check_at_least(std::string_view name, int value, int low) {
  if (value < low) throw_bad_request(fmt::format("{} is {}; it must be at least {}", name, value, low));
}

void check_bias(const LogitBias& entry, std::size_t vocab_size) {
  if (entry.token >= vocab_size) {
    throw_bad_request(fmt::format("logit_bias: token {} is outside the vocabulary of {}", entry.token, vocab_size));
  }
  if (std::isnan(entry.bias) || entry.bias == std::numeric_limits<float>::infinity()) {
    throw_bad_request(fmt::format("logit_bias: the bias of token {} is {}; it must be a finite number or -inf", entry.token, entry.bias));
  }
}

}  // namespace

std::string_view stage_name(SamplerStage stage) noexcept {
  for (const auto& row : kStages) {
    if (row.stage == stage) return row.name;
  }
  return "?";
}

std::span<const SamplerStage> llama_order() noexcept { return kLlamaOrder; }
std::span<const SamplerStage> temperature_first_order() noexcept { return kTemperatureFirst; }

std::vector<SamplerStage> parse_stages(std::string_view text) {
  std::vector<SamplerStage> stages;
  if (trimmed(text).empty()) return stages;
  while (true) {
    const auto end = text.find(';');
    const auto stage = stage_from_name(trimmed(text.substr(0, end)));
    if (std::ranges::find(stages, stage) != stages.end()) {
      throw_bad_request(fmt::format("samplers: {} is given twice", stage_name(stage)));
    }
    stages.push_back(stage);
    if (end == std::string_view::npos) return stages;
    text.remove_prefix(end + 1);
  }
}

void validate(const SamplerSettings& settings, std::size_t vocab_size) {
  constexpr double kMax = std::numeric_limits<double>::max();
  check_range("temperature", settings.temperature, -kMax, kMax);
  check_range("dynatemp_range", settings.dynatemp_range, 0, kMax);
  check_range("dynatemp_exponent", settings.dynatemp_exponent, 0, kMax);
  check_at_least("top_k", settings.top_k, 0);
  check_range("top_p", settings.top_p, 0, 1);
  check_range("min_p", settings.min_p, 0, 1);
  check_range("typ_p", settings.typ_p, 0, 1);
  check_range("top_n_sigma", settings.top_n_sigma, -kMax, kMax);
  check_range("xtc_probability", settings.xtc_probability, 0, 1);
  check_range("xtc_threshold", settings.xtc_threshold, 0, 1);
  check_at_least("min_keep", settings.min_keep, 0);
  // A penalty near zero would turn a finite logit into infinity.
  check_range("repeat_penalty", settings.repeat_penalty, 1e-3, 1e3);
  check_range("frequency_penalty", settings.frequency_penalty, -1e6, 1e6);
  check_range("presence_penalty", settings.presence_penalty, -1e6, 1e6);
  check_at_least("repeat_last_n", settings.repeat_last_n, -1);
  check_range("dry_multiplier", settings.dry_multiplier, 0, 1e6);
  check_range("dry_base", settings.dry_base, 1, 1e6);
  check_at_least("dry_allowed_length", settings.dry_allowed_length, 1);
  check_at_least("dry_penalty_last_n", settings.dry_penalty_last_n, -1);
  if (settings.mirostat != 0 && settings.mirostat != 2) {
    throw_bad_request(fmt::format("mirostat is {}; 0 (off) and 2 are supported", settings.mirostat));
  }
  check_range("mirostat_tau", settings.mirostat_tau, 0, 1e3);
  check_range("mirostat_eta", settings.mirostat_eta, 0, 1e3);
  for (const auto& entry : settings.logit_bias) check_bias(entry, vocab_size);
}

SamplerSettings sampling_defaults(std::string_view architecture, bool thinking) {
  SamplerSettings settings;
  if (architecture.starts_with("qwen3")) {
    settings.temperature = thinking ? 0.6 : 0.7;
    settings.top_k = 20;
    settings.top_p = thinking ? 0.95 : 0.8;
  } else if (architecture.starts_with("gemma3") || architecture.starts_with("gemma4")) {
    settings.temperature = 1.0;
    settings.top_k = 64;
    settings.top_p = 0.95;
  } else {
    settings.temperature = 0.8;
    settings.top_k = 40;
    settings.top_p = 0.95;
    settings.min_p = 0.05;
  }
  return settings;
}

std::uint64_t random_seed() { return std::random_device{}(); }

}  // namespace quench
