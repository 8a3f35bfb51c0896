#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sample/settings.h"
#include "text/tokenizer.h"

namespace quench::cli {

/// Sampler flags under llama.cpp's names. What is not given comes from the defaults that `settings` starts from.
class SamplingOptions {
 public:
  void add_to(CLI::App& command);
  /// `defaults` with what the user gave on top. Throws Error(kBadRequest) naming the flag.
  [[nodiscard]] SamplerSettings settings(SamplerSettings defaults, const Tokenizer& tokenizer) const;

 private:
  std::optional<double> temperature_, dynatemp_range_, dynatemp_exponent_, top_p_, min_p_, typ_p_, top_n_sigma_, xtc_probability_,
      xtc_threshold_, repeat_penalty_, frequency_penalty_, presence_penalty_, dry_multiplier_, dry_base_, mirostat_tau_, mirostat_eta_;
  std::optional<int> top_k_, min_keep_, repeat_last_n_, dry_allowed_length_, dry_penalty_last_n_, mirostat_;
  std::optional<std::int64_t> seed_;
  std::optional<std::string> order_;
  std::vector<std::string> logit_bias_;
  std::vector<std::string> dry_breakers_;
};

}  // namespace quench::cli
