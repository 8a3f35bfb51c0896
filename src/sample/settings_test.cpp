#include "sample/settings.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"

namespace quench {
namespace {

constexpr std::size_t kVocab = 8;

/// The message of the error that these settings cause; empty when there is none.
std::string complaint(const SamplerSettings& settings) {
  try {
    validate(settings, kVocab);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadRequest);
    return error.what();
  }
  return {};
}

template <typename Field, typename Value>
void expect_named(Field SamplerSettings::* field, Value value, std::string_view name) {
  SamplerSettings settings;
  settings.*field = static_cast<Field>(value);
  EXPECT_TRUE(complaint(settings).starts_with(std::string(name) + " is")) << name << ": " << complaint(settings);
}

TEST(SamplerSettings, EachSettingOutOfRangeIsNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  expect_named(&SamplerSettings::temperature, nan, "temperature");
  expect_named(&SamplerSettings::temperature, infinity, "temperature");
  expect_named(&SamplerSettings::dynatemp_range, -0.1, "dynatemp_range");
  expect_named(&SamplerSettings::dynatemp_exponent, -1.0, "dynatemp_exponent");
  expect_named(&SamplerSettings::top_k, -1, "top_k");
  expect_named(&SamplerSettings::top_p, 1.01, "top_p");
  expect_named(&SamplerSettings::top_p, nan, "top_p");
  expect_named(&SamplerSettings::min_p, -0.5, "min_p");
  expect_named(&SamplerSettings::typ_p, 2.0, "typ_p");
  expect_named(&SamplerSettings::top_n_sigma, nan, "top_n_sigma");
  expect_named(&SamplerSettings::xtc_probability, 1.5, "xtc_probability");
  expect_named(&SamplerSettings::xtc_threshold, -0.1, "xtc_threshold");
  expect_named(&SamplerSettings::min_keep, -1, "min_keep");
  expect_named(&SamplerSettings::repeat_penalty, 0.0, "repeat_penalty");
  expect_named(&SamplerSettings::frequency_penalty, infinity, "frequency_penalty");
  expect_named(&SamplerSettings::presence_penalty, nan, "presence_penalty");
  expect_named(&SamplerSettings::repeat_last_n, -2, "repeat_last_n");
  expect_named(&SamplerSettings::dry_multiplier, -1.0, "dry_multiplier");
  expect_named(&SamplerSettings::dry_base, 0.5, "dry_base");
  expect_named(&SamplerSettings::dry_allowed_length, 0, "dry_allowed_length");
  expect_named(&SamplerSettings::dry_penalty_last_n, -2, "dry_penalty_last_n");
  expect_named(&SamplerSettings::mirostat, 1, "mirostat");
  expect_named(&SamplerSettings::mirostat_tau, -1.0, "mirostat_tau");
  expect_named(&SamplerSettings::mirostat_eta, nan, "mirostat_eta");
}

TEST(SamplerSettings, TheDefaultsAreValid) {
  EXPECT_EQ(complaint({}), "");
  for (const auto* architecture : {"qwen3", "qwen3moe", "qwen2", "llama", "gemma3", "unheard-of"}) {
    EXPECT_EQ(complaint(sampling_defaults(architecture, true)), "") << architecture;
    EXPECT_EQ(complaint(sampling_defaults(architecture, false)), "") << architecture;
  }
}

TEST(SamplerSettings, ABiasNamesItsToken) {
  SamplerSettings settings;
  settings.logit_bias = {{8, 1.0f}};
  EXPECT_EQ(complaint(settings), "logit_bias: token 8 is outside the vocabulary of 8");
  settings.logit_bias = {{7, std::numeric_limits<float>::infinity()}};
  EXPECT_NE(complaint(settings).find("token 7"), std::string::npos);
  settings.logit_bias = {{7, -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(complaint(settings), "");
}

TEST(SamplerSettings, StageListsParse) {
  using enum SamplerStage;
  EXPECT_EQ(parse_stages("top_k;top_p;temperature"), (std::vector{kTopK, kTopP, kTemperature}));
  EXPECT_EQ(parse_stages(" typical-p ; nucleus;temp"), (std::vector{kTypical, kTopP, kTemperature}));
  EXPECT_TRUE(parse_stages("  ").empty());
  std::string all;
  for (const auto stage : llama_order()) {
    if (!all.empty()) all += ';';
    all += stage_name(stage);
  }
  EXPECT_EQ(all, "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
  EXPECT_EQ(parse_stages(all), std::vector(llama_order().begin(), llama_order().end()));
}

TEST(SamplerSettings, AnUnknownOrRepeatedStageIsAnErrorThatListsTheNames) {
  try {
    static_cast<void>(parse_stages("top_k;infill"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "samplers: there is no 'infill'; there are penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature");
  }
  EXPECT_THROW(static_cast<void>(parse_stages("top_k;top_k")), Error);
  EXPECT_THROW(static_cast<void>(parse_stages("top_k;")), Error);
}

TEST(SamplerSettings, FamiliesHaveTheirMakersDefaults) {
  const auto thinking = sampling_defaults("qwen3", true);
  EXPECT_EQ(thinking.temperature, 0.6);
  EXPECT_EQ(thinking.top_k, 20);
  EXPECT_EQ(thinking.top_p, 0.95);
  EXPECT_EQ(thinking.min_p, 0.0);
  const auto direct = sampling_defaults("qwen3", false);
  EXPECT_EQ(direct.temperature, 0.7);
  EXPECT_EQ(direct.top_k, 20);
  EXPECT_EQ(direct.top_p, 0.8);
  const auto gemma = sampling_defaults("gemma3", true);
  EXPECT_EQ(gemma.temperature, 1.0);
  EXPECT_EQ(gemma.top_k, 64);
  EXPECT_EQ(gemma.top_p, 0.95);
  const auto other = sampling_defaults("llama", true);
  EXPECT_EQ(other.temperature, 0.8);
  EXPECT_EQ(other.top_k, 40);
  EXPECT_EQ(other.min_p, 0.05);
}

}  // namespace
}  // namespace quench
