#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "engine/drafter.h"
#include "sample/sampler.h"

namespace quench {

using RequestId = std::uint64_t;

enum class AnswerEnd {
  kStopId,    ///< a stop id was drawn; it is not part of the answer
  kListener,  ///< the listener had enough
  kLength,    ///< max_new_tokens
  kCancelled,
  kDeadline,
  kFailed  ///< see AnswerReport::error
};

/// "stop id", "listener", "length", "cancelled", "deadline", "failed"
[[nodiscard]] std::string_view answer_end_name(AnswerEnd end) noexcept;

/// How one answer went. Seconds are of the engine's clock.
struct AnswerReport {
  AnswerEnd end = AnswerEnd::kLength;
  std::optional<Token> stop_id;
  std::exception_ptr error;
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;  ///< of the prompt, found in the prefix cache when the request was admitted first
  std::size_t generated_tokens = 0;
  std::size_t preemptions = 0;
  std::size_t drafted_tokens = 0;
  std::size_t accepted_tokens = 0;  ///< of the drafted ones
  double submitted = 0.0;
  double admitted = 0.0;
  double first_token = 0.0;
  double ended = 0.0;
};

/// Told what happens to a request, on the thread that runs the engine; it must not call the engine. What it throws ends the answer with
/// kFailed.
class RequestListener {
 public:
  RequestListener() = default;
  RequestListener(const RequestListener&) = delete;
  RequestListener& operator=(const RequestListener&) = delete;
  virtual ~RequestListener() = default;

  /// Tokens of the prompt that are computed or were cached.
  virtual void on_prefill(std::size_t /*done*/, std::size_t /*total*/) {}
  /// A token of the prompt, not the first, and the logits after those before it, valid during the call; EngineRequest::prompt_logits asks
  /// for them. Once for each, in order, before the first on_token.
  virtual void on_prompt_token(std::size_t /*position*/, Token /*token*/, std::span<const float> /*logits*/) {}
  /// A committed token and the logits it was drawn from, valid during the call. false ends the answer; the token is part of it.
  virtual bool on_token(std::size_t answer, Token token, std::span<const float> logits) = 0;
  /// Once for each answer; the last call for it. The sampler stands where the answer ended, and may be taken away.
  virtual void on_end(std::size_t answer, const AnswerReport& report, Sampler& sampler) noexcept = 0;
};

/// A prompt and how many answers to it.
struct EngineRequest {
  std::vector<Token> prompt{};
  std::size_t max_new_tokens = 0;
  std::vector<Token> stop_ids{};
  std::vector<Sampler> samplers{};          ///< one for each answer; their history becomes the prompt
  int priority = 0;                         ///< the higher, the sooner
  std::optional<double> deadline_seconds;   ///< after submission; later the answers end as they are
  bool prompt_logits = false;               ///< on_prompt_token is called; nothing of the prompt is taken from the prefix cache then
  std::uint64_t adapter = 0;                ///< see PrefixCache
  bool speculate = true;                    ///< tokens and logits are the same either way
  std::vector<ReferenceText> references{};  ///< texts that the answers may copy from
  std::unique_ptr<RequestListener> listener;
  RequestId id = 0;                   ///< of BatchEngine::new_id; 0: the engine gives one
  std::optional<double> submitted{};  ///< on the engine's clock; nothing: when the engine gets it
};

}  // namespace quench
