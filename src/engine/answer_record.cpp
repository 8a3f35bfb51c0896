#include "engine/answer_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace quench {
namespace {

double rate(std::size_t tokens, double seconds) { return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0; }

/// An error of its own for who reads the answer, perhaps in another thread: the engine goes on holding the first.
std::exception_ptr own_error(const std::exception_ptr& error) {
  if (!error) return nullptr;
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return std::make_exception_ptr(Error(known.kind(), std::string(known.what())));
  } catch (...) {
    return error;
  }
}

}  // namespace

double GenerationStats::prefill_tokens_per_second() const noexcept { return rate(prompt_tokens - cached_tokens, prefill_seconds); }
double GenerationStats::decode_tokens_per_second() const noexcept { return rate(generated_tokens, decode_seconds); }

EngineRequest engine_request(std::vector<Token> prompt, const GenerationOptions& options, std::size_t context) {
  if (prompt.size() >= context) {
    throw_bad_request(fmt::format("the prompt has {} tokens and the context {}: no room is left for an answer", prompt.size(), context));
  }
  EngineRequest request;
  request.max_new_tokens = options.must_fit ? options.max_new_tokens : std::min(options.max_new_tokens, context - prompt.size());
  request.prompt = std::move(prompt);
  request.stop_ids = options.stop_ids;
  request.prompt_logits = options.prompt_log_probabilities.has_value();
  request.speculate = options.speculate;
  request.references = options.references;
  request.deadline_seconds = options.deadline_seconds;
  return request;
}

AnswerRecord::AnswerRecord(const Tokenizer& tokenizer, const GenerationOptions& options)
    : max_new_tokens_(options.max_new_tokens),
      n_top_(options.log_probabilities),
      text_(tokenizer, options.stop_texts, options.with_specials) {}

std::string AnswerRecord::push(Token token, std::span<const float> logits) {
  result_.tokens.push_back(token);
  if (n_top_) result_.log_probabilities.push_back(log_probabilities(logits, token, *n_top_));
  std::string piece = text_.push(token);
  result_.text += piece;
  return piece;
}

const TokenLogProbabilities* AnswerRecord::last_log_probabilities() const noexcept {
  return result_.log_probabilities.empty() ? nullptr : &result_.log_probabilities.back();
}

std::string AnswerRecord::finish(const AnswerReport& report) {
  std::string piece = report.error ? std::string() : text_.finish();
  result_.text += piece;
  error_ = own_error(report.error);
  result_.end_token = report.stop_id;
  result_.stop_text = text_.matched_stop();
  result_.finish = FinishReason::kCancelled;
  if (stopped()) {
    result_.finish = FinishReason::kStopText;
  } else if (report.end == AnswerEnd::kStopId) {
    result_.finish = FinishReason::kEndToken;
  } else if (report.end == AnswerEnd::kLength) {
    result_.finish = result_.tokens.size() == max_new_tokens_ ? FinishReason::kLength : FinishReason::kContextFull;
  } else if (report.end == AnswerEnd::kDeadline) {
    result_.finish = FinishReason::kDeadline;
  }
  const bool spoke = report.first_token > 0.0;
  result_.stats = {.prompt_tokens = report.prompt_tokens,
                   .cached_tokens = report.cached_tokens,
                   .generated_tokens = report.generated_tokens,
                   .drafted_tokens = report.drafted_tokens,
                   .accepted_tokens = report.accepted_tokens,
                   .prefill_seconds = spoke ? report.first_token - report.admitted : 0.0,
                   .decode_seconds = spoke ? report.ended - report.first_token : 0.0};
  return piece;
}

GenerationResult AnswerRecord::take() {
  if (error_) std::rethrow_exception(error_);
  return std::move(result_);
}

}  // namespace quench
