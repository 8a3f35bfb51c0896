#include "sample/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "sample/exact_math.h"

namespace quench {
namespace {

double uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// XTC's coin. The finalizer of splitmix64 makes it independent of the upper bits, which the draw itself uses.
double coin(std::uint64_t bits) { return uniform(Xoshiro256(bits).next()); }

}  // namespace

Sampler::Sampler(SamplerSettings settings, std::size_t vocab_size)
    : settings_(std::move(settings)),
      vocab_size_(vocab_size),
      seed_(settings_.seed ? *settings_.seed : random_seed()),
      random_(seed_),
      window_(settings_.repeat_last_n),
      dry_(settings_),
      mu_(2.0 * settings_.mirostat_tau) {
  validate(settings_, vocab_size_);
}

Sampler Sampler::clone() const {
  Sampler copy(settings_, vocab_size_);
  copy.seed_ = seed_;
  copy.random_ = random_;
  copy.window_ = window_;
  copy.mu_ = mu_;
  copy.pending_ = pending_;
  for (const auto& processor : processors_) copy.processors_.push_back(processor->clone());
  return copy;
}

Sampler Sampler::with_settings(SamplerSettings settings) const {
  Sampler copy(std::move(settings), vocab_size_);
  copy.set_history(history());
  for (const auto& processor : processors_) copy.processors_.push_back(processor->clone());
  return copy;
}

void Sampler::add_processor(std::unique_ptr<LogitProcessor> processor) { processors_.push_back(std::move(processor)); }

void Sampler::forced(std::size_t most, std::vector<Token>& tokens) const {
  const std::size_t before = tokens.size();
  for (const auto& processor : processors_) {
    processor->forced(most, tokens);
    if (tokens.size() > before) return;
  }
}

void Sampler::prepare(std::span<const float> logits) {
  if (logits.size() != vocab_size_) {
    throw_bad_request(fmt::format("sampler: {} logits for a vocabulary of {}", logits.size(), vocab_size_));
  }
  const bool changed = !processors_.empty() || !settings_.logit_bias.empty();
  if (changed) {
    row_.assign(logits.begin(), logits.end());
    for (const auto& processor : processors_) processor->process(row_, window_.history());
    for (const auto& [token, bias] : settings_.logit_bias) row_[token] += bias;
    logits = row_;
  }
  if (candidates_.reset(logits)) return;
  if (changed) throw_bad_request("every token is forbidden: the constraint or the logit bias leaves nothing to pick");
  throw_bad_file(fmt::format("none of the {} logits is a number above -inf: the weights are damaged or out of range", logits.size()));
}

Token Sampler::sample(std::span<const float> logits) {
  pending_.reset();
  prepare(logits);
  if (settings_.greedy()) {
    apply_penalties();
    apply_dry();
    return candidates_.best();
  }
  Xoshiro256 ahead = random_;
  const std::uint64_t bits = ahead.next();
  if (settings_.mirostat == 2) {
    apply_penalties();
    apply_dry();
    apply_temperature();
    return draw_mirostat(uniform(bits));
  }
  for (const auto stage : settings_.order) apply(stage, bits);
  return candidates_.draw(uniform(bits)).token;
}

void Sampler::commit(Token token) {
  if (!settings_.greedy()) static_cast<void>(random_.next());
  if (pending_ && pending_->token == token) mu_ = pending_->next_mu;
  pending_.reset();
  window_.push(token);
  for (const auto& processor : processors_) processor->commit(token);
}

void Sampler::apply(SamplerStage stage, std::uint64_t bits) {
  const auto min_keep = static_cast<std::size_t>(settings_.min_keep);
  switch (stage) {
    case SamplerStage::kPenalties: return apply_penalties();
    case SamplerStage::kDry: return apply_dry();
    case SamplerStage::kTemperature: return apply_temperature();
    case SamplerStage::kTopNSigma:
      if (settings_.top_n_sigma > 0.0) candidates_.keep_sigma(settings_.top_n_sigma);
      return;
    case SamplerStage::kTopK:
      if (settings_.top_k > 0) candidates_.keep_top(static_cast<std::size_t>(settings_.top_k));
      return;
    case SamplerStage::kTypical:
      if (settings_.typ_p < 1.0) candidates_.keep_typical(settings_.typ_p, min_keep);
      return;
    case SamplerStage::kTopP:
      if (settings_.top_p < 1.0) candidates_.keep_nucleus(settings_.top_p, min_keep);
      return;
    case SamplerStage::kMinP:
      if (settings_.min_p > 0.0) candidates_.keep_relative(settings_.min_p, min_keep);
      return;
    case SamplerStage::kXtc:
      if (settings_.xtc_threshold <= 0.5 && coin(bits) < settings_.xtc_probability) {
        candidates_.drop_top_choices(settings_.xtc_threshold, min_keep);
      }
      return;
  }
}

/// Source: Keskar et al. 2019 (repetition; a negative logit is multiplied, or the penalty would reward it), OpenAI API (the others).
void Sampler::apply_penalties() {
  const double repeat = settings_.repeat_penalty;
  const double frequency = settings_.frequency_penalty;
  const double presence = settings_.presence_penalty;
  if (repeat == 1.0 && frequency == 0.0 && presence == 0.0) return;
  candidates_.edit(window_.counts(), [=](double logit, int count) {
    const double repeated = logit > 0.0 ? logit / repeat : logit * repeat;
    return repeated - count * frequency - presence;
  });
}

void Sampler::apply_dry() {
  if (!dry_.active()) return;
  candidates_.edit(dry_.penalties(window_.history()), [](double logit, double penalty) { return logit - penalty; });
}

/// With a range, the temperature follows the entropy of the candidates, from temperature - range to temperature + range.
void Sampler::apply_temperature() {
  double temperature = settings_.temperature;
  if (settings_.dynatemp_range > 0.0) {
    const std::size_t count = candidates_.count();
    if (count < 2) return;
    const double low = std::max(0.0, temperature - settings_.dynatemp_range);
    const double high = temperature + settings_.dynatemp_range;
    const double evenness = std::clamp(candidates_.entropy() / exact_log(static_cast<double>(count)), 0.0, 1.0);
    temperature = low + (high - low) * exact_pow(evenness, settings_.dynatemp_exponent);
  }
  // Below this nothing but the best has a weight.
  constexpr double kCold = 1e-9;
  if (temperature < kCold) {
    candidates_.keep_top(1);
  } else {
    candidates_.divide_by(temperature);
  }
}

/// Source: Basu et al. 2021, version 2: drop what is more surprising than mu, draw, and move mu by the error of the surprise.
Token Sampler::draw_mirostat(double u) {
  candidates_.keep_surprise(mu_);
  const auto drawn = candidates_.draw(u);
  constexpr double kLog2E = 1.44269504088896340736;
  const double surprise = -exact_log(std::max(drawn.probability, std::numeric_limits<double>::min())) * kLog2E;
  pending_ = MirostatStep{drawn.token, mu_ - settings_.mirostat_eta * (surprise - settings_.mirostat_tau)};
  return drawn.token;
}

}  // namespace quench
