#include "cli/sampling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "cli/option_values.h"
#include "engine/dry_breakers.h"

namespace quench::cli {
namespace {

/// "15043+1", "15043-0.5" or "15043-inf": token id and bias.
LogitBias parse_bias(const std::string& text) {
  const std::size_t sign = text.find_first_of("+-");
  char* end = nullptr;
  const unsigned long id = std::strtoul(text.c_str(), &end, 10);
  if (sign == 0 || sign == std::string::npos || end != text.c_str() + sign || id > std::numeric_limits<Token>::max()) {
    throw_bad_request("--logit-bias " + text + ": give ID+BIAS or ID-BIAS, for example 15043-inf");
  }
  const float bias = std::strtof(text.c_str() + sign, &end);
  if (*end != '\0') throw_bad_request("--logit-bias " + text + ": '" + text.substr(sign) + "' is no number");
  return {static_cast<Token>(id), bias};
}

/// An error that begins with the name of a setting, with the flag in its place.
Error naming_flag(const Error& error) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kOwnNames = {{{"temperature", "--temp"},
                                                                                       {"dynatemp_exponent", "--dynatemp-exp"},
                                                                                       {"typ_p", "--typical"},
                                                                                       {"top_n_sigma", "--top-nsigma"},
                                                                                       {"mirostat_tau", "--mirostat-ent"},
                                                                                       {"mirostat_eta", "--mirostat-lr"},
                                                                                       {"samplers", "--samplers"}}};
  const std::string message = error.what();
  const std::string name = message.substr(0, message.find_first_of(" :"));
  std::string flag = "--" + name;
  std::ranges::replace(flag, '_', '-');
  for (const auto& [setting, own] : kOwnNames) {
    if (setting == name) flag = own;
  }
  return {error.kind(), flag + message.substr(name.size())};
}

template <typename T, typename U>
void override_with(T& setting, const std::optional<U>& given) {
  if (given) setting = *given;
}

}  // namespace

void SamplingOptions::add_to(CLI::App& command) {
  const auto group = "Sampling";
  const SamplerSettings off;  // what the steps do unless asked
  const auto add = [&](const char* name, auto& target, const char* help, auto standard) {
    CLI::Option* option = command.add_option(name, target, help)->group(group)->default_str(fmt::format("{}", standard));
    if constexpr (std::is_same_v<decltype(target), std::optional<int>&>) {
      option->check(whole_number(std::numeric_limits<int>::min(), std::numeric_limits<int>::max()))->type_name("N");
    } else if constexpr (std::is_same_v<decltype(target), std::optional<double>&>) {
      option->type_name("F");
    }
  };
  add("--temp,--temperature", temperature_,
      "Temperature; 0 takes the most probable token; default 0.8, in chat as the model's family wants it", "");
  add("--top-k", top_k_, "Keep the K most probable tokens; 0 = off; default 40, in chat the family's", "");
  add("--top-p", top_p_, "Keep the smallest set with this probability; 1 = off; default 0.95, in chat the family's", "");
  add("--min-p", min_p_, "Drop tokens below this share of the best one; 0 = off; default 0.05, in chat the family's", "");
  add("--typical,--typ-p", typ_p_, "Locally typical sampling; 1 = off", off.typ_p);
  add("--top-nsigma,--top-n-sigma", top_n_sigma_, "Keep tokens within N standard deviations of the best logit; 0 = off", off.top_n_sigma);
  add("--xtc-probability", xtc_probability_, "Chance to exclude top choices; 0 = off", off.xtc_probability);
  add("--xtc-threshold", xtc_threshold_, "Least probability of a top choice", off.xtc_threshold);
  add("--min-keep", min_keep_, "Truncating steps leave at least so many tokens", off.min_keep);
  add("--dynatemp-range", dynatemp_range_, "Temperature moves by this much with the entropy; 0 = off", off.dynatemp_range);
  add("--dynatemp-exp", dynatemp_exponent_, "Exponent of the entropy in dynamic temperature", off.dynatemp_exponent);
  add("--repeat-penalty", repeat_penalty_, "Divides positive logits of recent tokens; 1 = off", off.repeat_penalty);
  add("--frequency-penalty", frequency_penalty_, "Subtracted once per occurrence; 0 = off", off.frequency_penalty);
  add("--presence-penalty", presence_penalty_, "Subtracted when a token occurred; 0 = off", off.presence_penalty);
  add("--repeat-last-n", repeat_last_n_, "Tokens that the penalties look back on; 0 = off, -1 = all", off.repeat_last_n);
  add("--dry-multiplier", dry_multiplier_, "DRY repetition penalty; 0 = off", off.dry_multiplier);
  add("--dry-base", dry_base_, "Base of the DRY penalty", off.dry_base);
  add("--dry-allowed-length", dry_allowed_length_, "Repetitions up to this length are free", off.dry_allowed_length);
  add("--dry-penalty-last-n", dry_penalty_last_n_, "Tokens that DRY looks back on; 0 = off, -1 = all", off.dry_penalty_last_n);
  add("--dry-sequence-breaker", dry_breakers_, "Text that a repetition may not run across (repeatable); 'none' for no breakers", "");
  add("--mirostat", mirostat_, "0 = off, 2 = mirostat 2", off.mirostat);
  add("--mirostat-ent", mirostat_tau_, "Target surprise of mirostat", off.mirostat_tau);
  add("--mirostat-lr", mirostat_eta_, "Learning rate of mirostat", off.mirostat_eta);
  add("-l,--logit-bias", logit_bias_, "ID+BIAS or ID-BIAS (repeatable); ID-inf forbids a token", "");
  add("--samplers", order_, "Order of the steps, separated by ';', or 'llama' or 'temperature-first'", "llama");
  command.add_option("-s,--seed", seed_, "Seed; -1 or absent = random, printed")
      ->check(whole_number(-1, std::numeric_limits<std::int64_t>::max()))
      ->group(group)
      ->type_name("N");
}

SamplerSettings SamplingOptions::settings(SamplerSettings result, const Tokenizer& tokenizer) const {
  override_with(result.temperature, temperature_);
  override_with(result.dynatemp_range, dynatemp_range_);
  override_with(result.dynatemp_exponent, dynatemp_exponent_);
  override_with(result.top_k, top_k_);
  override_with(result.top_p, top_p_);
  override_with(result.min_p, min_p_);
  override_with(result.typ_p, typ_p_);
  override_with(result.top_n_sigma, top_n_sigma_);
  override_with(result.xtc_probability, xtc_probability_);
  override_with(result.xtc_threshold, xtc_threshold_);
  override_with(result.min_keep, min_keep_);
  override_with(result.repeat_penalty, repeat_penalty_);
  override_with(result.frequency_penalty, frequency_penalty_);
  override_with(result.presence_penalty, presence_penalty_);
  override_with(result.repeat_last_n, repeat_last_n_);
  override_with(result.dry_multiplier, dry_multiplier_);
  override_with(result.dry_base, dry_base_);
  override_with(result.dry_allowed_length, dry_allowed_length_);
  override_with(result.dry_penalty_last_n, dry_penalty_last_n_);
  override_with(result.mirostat, mirostat_);
  override_with(result.mirostat_tau, mirostat_tau_);
  override_with(result.mirostat_eta, mirostat_eta_);
  if (seed_ && *seed_ >= 0) result.seed = static_cast<std::uint64_t>(*seed_);
  for (const std::string& bias : logit_bias_) result.logit_bias.push_back(parse_bias(bias));
  if (order_ == "llama") {
    result.order.assign(llama_order().begin(), llama_order().end());
  } else if (order_ == "temperature-first") {
    result.order.assign(temperature_first_order().begin(), temperature_first_order().end());
  } else if (order_) {
    try {
      result.order = parse_stages(*order_);
    } catch (const Error& error) {
      throw naming_flag(error);
    }
  }
  const bool no_breakers = dry_breakers_.size() == 1 && dry_breakers_.front() == "none";
  if (result.dry_multiplier > 0 && !no_breakers) {
    result.dry_breakers = dry_breaker_sequences(tokenizer, dry_breakers_.empty() ? default_dry_breakers() : dry_breakers_);
  }
  try {
    validate(result, tokenizer.vocab_size());
  } catch (const Error& error) {
    throw naming_flag(error);
  }
  return result;
}

}  // namespace quench::cli
