#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/batch_engine.h"

namespace quench {

/// What a test saw of one answer.
struct RecordedAnswer {
  std::vector<Token> tokens;
  std::uint64_t logits_hash = 0;  ///< of all rows that tokens were drawn from, and of the prompt's where they are asked for
  std::vector<Token> told{};      ///< tokens of the prompt with their logits; of the first answer
  AnswerReport report;
  int ends = 0;
};

/// Writes what happens to a request into `answers`, which outlives the engine.
class Recorder final : public RequestListener {
 public:
  /// wants_more  asked after each token; nothing: always
  explicit Recorder(std::vector<RecordedAnswer>& answers, std::function<bool(const RecordedAnswer&)> wants_more = {})
      : answers_(answers), wants_more_(std::move(wants_more)) {}

  void on_prompt_token(std::size_t position, Token token, std::span<const float> logits) override {
    RecordedAnswer& recorded = answers_[0];
    recorded.told.push_back(token);
    EXPECT_EQ(position, recorded.told.size());
    EXPECT_TRUE(recorded.tokens.empty());
    add_to_hash(recorded, logits);
  }
  bool on_token(std::size_t answer, Token token, std::span<const float> logits) override {
    RecordedAnswer& recorded = answers_[answer];
    recorded.tokens.push_back(token);
    add_to_hash(recorded, logits);
    return !wants_more_ || wants_more_(recorded);
  }
  void on_end(std::size_t answer, const AnswerReport& report, Sampler& /*sampler*/) noexcept override {
    answers_[answer].report = report;
    answers_[answer].ends += 1;
  }

 private:
  static void add_to_hash(RecordedAnswer& recorded, std::span<const float> logits) {
    const std::string_view bytes(reinterpret_cast<const char*>(logits.data()), logits.size_bytes());
    recorded.logits_hash = recorded.logits_hash * 31 + std::hash<std::string_view>()(bytes);
  }

  std::vector<RecordedAnswer>& answers_;
  std::function<bool(const RecordedAnswer&)> wants_more_;
};

/// A request of tests: greedy, or sampled with the seed.
struct TestRequest {
  std::vector<Token> prompt{};
  std::size_t max_new_tokens = 10;
  std::size_t answers = 1;
  double temperature = 0.0;
  std::uint64_t seed = 1;
  int priority = 0;
  std::vector<Token> stop_ids{};
  bool prompt_logits = false;
};

inline EngineRequest make_request(const TestRequest& request, std::size_t vocab_size, std::vector<RecordedAnswer>& answers,
                                  std::function<bool(const RecordedAnswer&)> wants_more = {}) {
  EngineRequest made;
  made.prompt = request.prompt;
  made.max_new_tokens = request.max_new_tokens;
  made.stop_ids = request.stop_ids;
  made.priority = request.priority;
  made.prompt_logits = request.prompt_logits;
  for (std::size_t i = 0; i < request.answers; ++i) {
    SamplerSettings settings;
    settings.temperature = request.temperature;
    settings.repeat_penalty = request.temperature > 0.0 ? 1.1 : 1.0;
    settings.seed = request.seed + i;
    made.samplers.emplace_back(settings, vocab_size);
  }
  answers.assign(request.answers, {});
  made.listener = std::make_unique<Recorder>(answers, std::move(wants_more));
  return made;
}

inline void run_to_end(BatchEngine& engine) {
  while (engine.step()) {
  }
}

}  // namespace quench
