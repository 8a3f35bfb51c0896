#include <fmt/format.h>

#include <string>
#include <utility>

#include "api/state.h"

namespace quench::api {
namespace {

TokenProbability to_probability(const quench::TokenProbability& found, const Tokenizer& tokenizer) {
  return {
      .token = found.token, .text = tokenizer.token_bytes(found.token, /*with_specials=*/true), .log_probability = found.log_probability};
}

ErrorCode to_code(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kBadFile: return ErrorCode::kBadFile;
    case ErrorKind::kUnsupported: return ErrorCode::kUnsupported;
    case ErrorKind::kBadRequest: return ErrorCode::kBadRequest;
    case ErrorKind::kOutOfMemory: return ErrorCode::kOutOfMemory;
    case ErrorKind::kIo: return ErrorCode::kIo;
    case ErrorKind::kCheckFailed: break;
  }
  return ErrorCode::kInternal;
}

template <typename T, typename U>
void override_with(T& setting, const std::optional<U>& given) {
  if (given) setting = *given;
}

quench::Role to_role(Role role) {
  switch (role) {
    case Role::kSystem: return quench::Role::kSystem;
    case Role::kUser: return quench::Role::kUser;
    case Role::kAssistant: return quench::Role::kAssistant;
  }
  throw_bad_request("a message's role is none of Role");
}

}  // namespace

Finish to_finish(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kEndToken: return Finish::kEnd;
    case FinishReason::kStopText: return Finish::kStop;
    case FinishReason::kLength: return Finish::kLength;
    case FinishReason::kContextFull: return Finish::kContextFull;
    case FinishReason::kDeadline: return Finish::kTimeout;
    case FinishReason::kCancelled: break;
  }
  return Finish::kCancelled;
}

void check_threads(int threads) {
  constexpr int kMost = 1024;
  if (threads < 0 || threads > kMost)
    throw_bad_request("threads is " + std::to_string(threads) + ": it may be 0 to " + std::to_string(kMost));
}

Error translated(const quench::Error& error) { return {to_code(error.kind()), error.what()}; }

Role to_role(quench::Role role) noexcept {
  switch (role) {
    case quench::Role::kSystem: return Role::kSystem;
    case quench::Role::kUser: return Role::kUser;
    case quench::Role::kAssistant: break;
  }
  return Role::kAssistant;
}

std::vector<ChatMessage> to_chat_messages(std::span<const Message> messages) {
  std::vector<ChatMessage> result;
  for (const Message& message : messages) {
    result.push_back({to_role(message.role), message.content});
  }
  return result;
}

quench::Thinking to_thinking(Thinking thinking) {
  switch (thinking) {
    case Thinking::kOn: return quench::Thinking::kOn;
    case Thinking::kOff: return quench::Thinking::kOff;
    case Thinking::kDefault: return quench::Thinking::kDefault;
  }
  throw_bad_request("thinking is none of Thinking");
}

void check_timeout(std::optional<double> seconds) {
  if (seconds && !(*seconds > 0.0)) throw_bad_request(fmt::format("timeout_seconds is {}: it must be above 0", *seconds));
}

SamplerSettings to_settings(const Sampling& sampling, const SamplerSettings& defaults, DryBreakers& breakers) {
  SamplerSettings settings = defaults;
  override_with(settings.temperature, sampling.temperature);
  override_with(settings.top_k, sampling.top_k);
  override_with(settings.top_p, sampling.top_p);
  override_with(settings.min_p, sampling.min_p);
  override_with(settings.repeat_penalty, sampling.repeat_penalty);
  override_with(settings.frequency_penalty, sampling.frequency_penalty);
  override_with(settings.presence_penalty, sampling.presence_penalty);
  override_with(settings.repeat_last_n, sampling.repeat_last_n);
  override_with(settings.typ_p, sampling.typical_p);
  override_with(settings.top_n_sigma, sampling.top_n_sigma);
  override_with(settings.xtc_probability, sampling.xtc_probability);
  override_with(settings.xtc_threshold, sampling.xtc_threshold);
  override_with(settings.min_keep, sampling.min_keep);
  override_with(settings.dynatemp_range, sampling.dynatemp_range);
  override_with(settings.dynatemp_exponent, sampling.dynatemp_exponent);
  override_with(settings.dry_multiplier, sampling.dry_multiplier);
  override_with(settings.dry_base, sampling.dry_base);
  override_with(settings.dry_allowed_length, sampling.dry_allowed_length);
  override_with(settings.dry_penalty_last_n, sampling.dry_penalty_last_n);
  // They look at the whole vocabulary.
  if (settings.dry_multiplier > 0.0) {
    settings.dry_breakers = breakers.sequences(sampling.dry_breakers.value_or(default_dry_breakers()));
  }
  override_with(settings.mirostat, sampling.mirostat);
  override_with(settings.mirostat_tau, sampling.mirostat_tau);
  override_with(settings.mirostat_eta, sampling.mirostat_eta);
  if (sampling.samplers) settings.order = parse_stages(*sampling.samplers);
  for (const LogitBias& bias : sampling.logit_bias) settings.logit_bias.push_back({bias.token, bias.bias});
  settings.seed = sampling.seed;
  return settings;
}

TokenLogProbabilities to_log_probabilities(const quench::TokenLogProbabilities& found, const Tokenizer& tokenizer) {
  TokenLogProbabilities result{.chosen = to_probability(found.chosen, tokenizer), .top = {}};
  for (const auto& one : found.top) result.top.push_back(to_probability(one, tokenizer));
  return result;
}

Answer to_answer(quench::GenerationResult result, const Tokenizer& tokenizer) {
  Answer answer;
  answer.text = std::move(result.text);
  answer.tokens = std::move(result.tokens);
  answer.finish = to_finish(result.finish);
  for (const auto& found : result.prompt_log_probabilities) {
    answer.prompt_log_probabilities.push_back(to_log_probabilities(found, tokenizer));
  }
  for (const auto& found : result.log_probabilities) answer.log_probabilities.push_back(to_log_probabilities(found, tokenizer));
  answer.prompt_tokens = result.stats.prompt_tokens;
  answer.cached_tokens = result.stats.cached_tokens;
  answer.prompt_seconds = result.stats.prefill_seconds;
  answer.answer_seconds = result.stats.decode_seconds;
  return answer;
}

}  // namespace quench::api
