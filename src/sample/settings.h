#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace quench {

/// One step between logits and token. Names and meaning are llama.cpp's.
enum class SamplerStage : std::uint8_t { kPenalties, kDry, kTopNSigma, kTopK, kTypical, kTopP, kMinP, kXtc, kTemperature };

/// As `--samplers` takes it: penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature.
[[nodiscard]] std::string_view stage_name(SamplerStage stage) noexcept;

/// penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature: temperature comes last.
[[nodiscard]] std::span<const SamplerStage> llama_order() noexcept;
/// penalties, top_k, temperature, top_p, min_p: the nucleus is cut from the tempered distribution.
[[nodiscard]] std::span<const SamplerStage> temperature_first_order() noexcept;
/// "top_k;top_p;temperature". Also takes the aliases typical, typical_p, nucleus, temp, and '-' for '_'. Throws Error(kBadRequest)
/// for a name that is unknown (and lists the names) or given twice. An empty text is an empty order: the plain distribution.
[[nodiscard]] std::vector<SamplerStage> parse_stages(std::string_view text);

struct LogitBias {
  Token token;
  float bias;  ///< added to the logit; -infinity forbids the token
};

/// How a token is picked. The defaults of the single stages switch them off; see sampling_defaults for useful ones.
struct SamplerSettings {
  double temperature = 0.0;  ///< <= 0: the most probable token, no random draw, truncating stages skipped
  double dynatemp_range = 0.0;
  double dynatemp_exponent = 1.0;
  int top_k = 0;             ///< 0: off
  double top_p = 1.0;        ///< 1: off
  double min_p = 0.0;        ///< 0: off
  double typ_p = 1.0;        ///< 1: off
  double top_n_sigma = 0.0;  ///< <= 0: off
  double xtc_probability = 0.0;
  double xtc_threshold = 0.1;  ///< above 0.5: off
  int min_keep = 0;            ///< top-p, min-p, typical-p and XTC leave at least this many

  double repeat_penalty = 1.0;
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  int repeat_last_n = 64;  ///< tokens that the penalties look back on; 0: off, -1: all

  double dry_multiplier = 0.0;  ///< 0: off
  double dry_base = 1.75;
  int dry_allowed_length = 2;
  int dry_penalty_last_n = 64;  ///< tokens looked back on; 0: off, -1: all
  /// Token sequences that a repetition may not run across; see dry_breaker_sequences for making them from texts.
  std::vector<std::vector<Token>> dry_breakers;

  int mirostat = 0;  ///< 0 or 2
  double mirostat_tau = 5.0;
  double mirostat_eta = 0.1;

  std::vector<LogitBias> logit_bias;
  std::vector<SamplerStage> order{llama_order().begin(), llama_order().end()};
  std::optional<std::uint64_t> seed;  ///< nothing: a random one, reported by Sampler::seed

  [[nodiscard]] bool greedy() const noexcept { return !(temperature > 0.0); }
};

/// Throws Error(kBadRequest) naming the setting, its value and what is allowed.
void validate(const SamplerSettings& settings, std::size_t vocab_size);

/// What the makers of a model family recommend; `thinking` matters to Qwen3 alone. Families without a recommendation get llama.cpp's
/// defaults (0.8, top-k 40, top-p 0.95, min-p 0.05).
///
/// architecture: general.architecture of the file
[[nodiscard]] SamplerSettings sampling_defaults(std::string_view architecture, bool thinking);

/// A seed from the system's entropy, short enough to be typed again.
[[nodiscard]] std::uint64_t random_seed();

}  // namespace quench
