#include "engine/batch_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "engine/recorded_answers.h"
#include "engine/simulated_backend.h"
#include "engine/tiny_model.h"

namespace quench {
namespace {

constexpr std::uint64_t kPageBytes = 1024;
constexpr std::size_t kVocab = 64;

/// An engine on a simulated model.
class Simulation {
 public:
  explicit Simulation(std::uint64_t budget_bytes, BatchEngineOptions options = {}, std::vector<std::size_t> windows = {0},
                      SimulatedMachine machine = {})
      : backend(machine),
        cache(SimulatedBackend::layout(windows), {.budget_bytes = budget_bytes, .context = 4000}),
        engine(backend, cache, options) {}

  RequestId submit(const TestRequest& request, std::vector<RecordedAnswer>& answers) {
    return engine.submit(make_request(request, kVocab, answers));
  }

  SimulatedBackend backend;
  KvCache cache;
  BatchEngine engine;
};

std::vector<Token> some_tokens(std::uint64_t seed, std::size_t n) {
  Xoshiro256 random(seed);
  std::vector<Token> tokens(n);
  for (Token& token : tokens) token = static_cast<Token>(random.below(kVocab));
  return tokens;
}

/// What the request gives alone, on a cold engine, in large steps, without speculation.
std::vector<RecordedAnswer> alone(const TestRequest& request, const std::vector<std::size_t>& windows = {0}, std::size_t memory = 0) {
  BatchEngineOptions options;
  options.most_draft = 0;
  SimulatedMachine machine;
  machine.memory = memory;
  Simulation simulation(1 << 24, options, windows, machine);
  std::vector<RecordedAnswer> answers;
  simulation.submit(request, answers);
  run_to_end(simulation.engine);
  return answers;
}

void expect_same(const std::vector<RecordedAnswer>& ours, const std::vector<RecordedAnswer>& expected) {
  ASSERT_EQ(ours.size(), expected.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].ends, 1);
    EXPECT_EQ(ours[i].tokens, expected[i].tokens) << "answer " << i;
    EXPECT_EQ(ours[i].told, expected[i].told) << "answer " << i;
    EXPECT_EQ(ours[i].logits_hash, expected[i].logits_hash) << "answer " << i;
    EXPECT_EQ(answer_end_name(ours[i].report.end), answer_end_name(expected[i].report.end));
  }
}

std::string message_of(BatchEngine& engine, EngineRequest request, ErrorKind kind) {
  try {
    engine.submit(std::move(request));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(BatchEngine, AnswersARequest) {
  Simulation simulation(1 << 20);
  std::vector<RecordedAnswer> answers;
  simulation.submit({.prompt = some_tokens(1, 100), .max_new_tokens = 7}, answers);
  EXPECT_FALSE(simulation.engine.idle());
  run_to_end(simulation.engine);
  EXPECT_TRUE(simulation.engine.idle());
  ASSERT_EQ(answers[0].ends, 1);
  EXPECT_EQ(answers[0].tokens.size(), 7u);
  EXPECT_EQ(answers[0].report.end, AnswerEnd::kLength);
  EXPECT_EQ(answers[0].report.prompt_tokens, 100u);
  EXPECT_EQ(answers[0].report.generated_tokens, 7u);
  EXPECT_LE(answers[0].report.admitted, answers[0].report.first_token);
  EXPECT_LT(answers[0].report.first_token, answers[0].report.ended);
}

TEST(BatchEngine, AStopIdEndsTheAnswerAndIsNoPartOfIt) {
  const TestRequest request{.prompt = some_tokens(1, 20), .max_new_tokens = 30};
  const auto whole = alone(request);
  TestRequest stopped = request;
  stopped.stop_ids = {whole[0].tokens[5]};
  const auto first = std::ranges::find(whole[0].tokens, stopped.stop_ids[0]);
  const auto answers = alone(stopped);
  EXPECT_EQ(answers[0].tokens, std::vector<Token>(whole[0].tokens.begin(), first));
  EXPECT_EQ(answers[0].report.end, AnswerEnd::kStopId);
  EXPECT_EQ(answers[0].report.stop_id, stopped.stop_ids[0]);
}

/// Lets through one text alone, and says so in advance.
class OneText final : public LogitProcessor {
 public:
  explicit OneText(std::vector<Token> text) : text_(std::move(text)) {}

  void process(std::span<float> logits, std::span<const Token>) override {
    if (at_ == text_.size()) return;
    for (std::size_t token = 0; token < logits.size(); ++token) {
      if (token != text_[at_]) logits[token] = -INFINITY;
    }
  }
  void commit(Token) override { at_ = std::min(at_ + 1, text_.size()); }
  void forced(std::size_t most, std::vector<Token>& tokens) const override {
    const auto rest = std::span(text_).subspan(at_);
    tokens.insert(tokens.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(most, rest.size())));
  }
  [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override { return std::make_unique<OneText>(*this); }

 private:
  std::vector<Token> text_;
  std::size_t at_ = 0;
};

TEST(BatchEngine, WhatAConstraintForcesIsCheckedInFewSteps) {
  const auto forced = some_tokens(8, 90);
  std::vector<RecordedAnswer> with;
  std::vector<RecordedAnswer> without;
  std::uint64_t steps[2];
  for (int speculate = 0; speculate < 2; ++speculate) {
    Simulation simulation(1 << 20);
    // The engine has run before, and knows its steps' times.
    simulation.submit({.prompt = some_tokens(2, 50), .max_new_tokens = 20}, with);
    run_to_end(simulation.engine);
    const std::uint64_t before = simulation.engine.stats().steps;
    auto& answers = speculate == 1 ? with : without;
    EngineRequest request = make_request({.prompt = some_tokens(1, 20), .max_new_tokens = 100, .temperature = 0.7}, kVocab, answers);
    request.speculate = speculate == 1;
    request.samplers[0].add_processor(std::make_unique<OneText>(forced));
    simulation.engine.submit(std::move(request));
    run_to_end(simulation.engine);
    steps[speculate] = simulation.engine.stats().steps - before;
  }
  EXPECT_EQ(with[0].tokens, without[0].tokens);
  EXPECT_EQ(with[0].logits_hash, without[0].logits_hash);
  EXPECT_EQ(std::vector<Token>(with[0].tokens.begin(), with[0].tokens.begin() + 90), forced);
  EXPECT_LT(steps[1] * 3, steps[0]);
}

TEST(BatchEngine, AnAnswerThatAListenerEndsAtAWrongGuessLeavesNoWrongPage) {
  // A model of a short memory repeats itself, and rows cost little: guesses are made, and often wrong at some token.
  SimulatedMachine machine;
  machine.memory = 2;
  machine.row_seconds = 0.0001;
  const auto prompt = some_tokens(5, 100);
  std::uint64_t wrong = 0;
  for (std::size_t length = 1; length < 120; ++length) {
    Simulation simulation(1 << 20, {}, {0}, machine);
    std::vector<RecordedAnswer> warm;
    simulation.submit({.prompt = some_tokens(2, 50), .max_new_tokens = 20}, warm);
    run_to_end(simulation.engine);
    std::vector<RecordedAnswer> answers;
    simulation.engine.submit(make_request({.prompt = prompt, .max_new_tokens = 200, .temperature = 0.8, .seed = length}, kVocab, answers,
                                          [&](const RecordedAnswer& answer) { return answer.tokens.size() < length; }));
    run_to_end(simulation.engine);
    ASSERT_EQ(answers[0].report.end, AnswerEnd::kListener);
    wrong += answers[0].report.drafted_tokens - answers[0].report.accepted_tokens;
    auto next = prompt;
    next.insert(next.end(), answers[0].tokens.begin(), answers[0].tokens.end());
    next.push_back(1);  // the model sees it and the last token of the answer
    std::vector<RecordedAnswer> after;
    simulation.submit({.prompt = next, .max_new_tokens = 3}, after);
    run_to_end(simulation.engine);
    ASSERT_NO_FATAL_FAILURE(expect_same(after, alone({.prompt = next, .max_new_tokens = 3}, {0}, machine.memory))) << length;
  }
  EXPECT_GT(wrong, 100u);
}

TEST(BatchEngine, AConstraintThatThrowsOrNamesAnUnknownTokenGuessesNothing) {
  class Odd final : public LogitProcessor {
   public:
    explicit Odd(bool throws) : throws_(throws) {}
    void process(std::span<float>, std::span<const Token>) override {}
    void commit(Token) override {}
    void forced(std::size_t, std::vector<Token>& tokens) const override {
      tokens.push_back(static_cast<Token>(kVocab) + 5);
      if (throws_) throw std::runtime_error("no guess");
    }
    [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override { return std::make_unique<Odd>(throws_); }

   private:
    bool throws_;
  };
  for (const bool throws : {false, true}) {
    Simulation simulation(1 << 20);
    const TestRequest request{.prompt = some_tokens(1, 20), .max_new_tokens = 40};
    std::vector<RecordedAnswer> answers;
    EngineRequest made = make_request(request, kVocab, answers);
    made.samplers[0].add_processor(std::make_unique<Odd>(throws));
    simulation.engine.submit(std::move(made));
    run_to_end(simulation.engine);
    expect_same(answers, alone(request));
  }
}

TEST(BatchEngine, AListenerEndsItsAnswer) {
  Simulation simulation(1 << 20);
  std::vector<RecordedAnswer> answers;
  simulation.engine.submit(
      make_request({.prompt = some_tokens(1, 20)}, kVocab, answers, [](const RecordedAnswer& answer) { return answer.tokens.size() < 3; }));
  run_to_end(simulation.engine);
  EXPECT_EQ(answers[0].tokens.size(), 3u);
  EXPECT_EQ(answers[0].report.end, AnswerEnd::kListener);
}

TEST(BatchEngine, ALaterRequestStartsFromWhatEarlierOnesComputed) {
  Simulation simulation(1 << 20);
  auto prompt = some_tokens(1, 150);
  std::vector<RecordedAnswer> first;
  simulation.submit({.prompt = prompt}, first);
  run_to_end(simulation.engine);
  prompt.insert(prompt.end(), first[0].tokens.begin(), first[0].tokens.end());
  prompt.push_back(3);
  std::vector<RecordedAnswer> second;
  simulation.submit({.prompt = prompt}, second);
  run_to_end(simulation.engine);
  // The last token of an answer is never computed.
  EXPECT_EQ(second[0].report.cached_tokens, 159u);
  expect_same(second, alone({.prompt = prompt}));
}

TEST(BatchEngine, TheSamePromptAtTheSameTimeIsComputedOnce) {
  Simulation simulation(1 << 20, {.most_draft = 0});
  const TestRequest request{.prompt = some_tokens(1, 1000), .max_new_tokens = 5};
  std::vector<std::vector<RecordedAnswer>> answers(4);
  for (auto& one : answers) simulation.submit(request, one);
  run_to_end(simulation.engine);
  for (const auto& one : answers) expect_same(one, alone(request));
  // The last 40 tokens are no whole page, and each answer computes them and all but the last of its own.
  EXPECT_LE(simulation.engine.stats().computed_rows, 960u + 4 * (40 + 4));
}

TEST(BatchEngine, SeveralAnswersShareTheirPrompt) {
  Simulation simulation(1 << 20, {.most_draft = 0});
  const TestRequest request{.prompt = some_tokens(1, 1000), .max_new_tokens = 5, .answers = 8, .temperature = 1.0};
  std::vector<RecordedAnswer> answers;
  simulation.submit(request, answers);
  run_to_end(simulation.engine);
  EXPECT_EQ(simulation.engine.stats().computed_rows, 1000u + 8 * 4);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto own = alone({.prompt = request.prompt, .max_new_tokens = 5, .temperature = 1.0, .seed = 1 + i});
    expect_same({answers[i]}, own);
  }
  EXPECT_NE(answers[0].tokens, answers[1].tokens);
}

TEST(BatchEngine, APromptsLogitsAreToldOnceForEachTokenThoughItWasCached) {
  Simulation simulation(1 << 20);
  TestRequest request{.prompt = some_tokens(1, 700), .max_new_tokens = 5, .answers = 2, .temperature = 1.0};
  std::vector<RecordedAnswer> answers;
  simulation.submit(request, answers);
  run_to_end(simulation.engine);
  EXPECT_TRUE(answers[0].told.empty());
  const auto drawn = answers[1];
  request.prompt_logits = true;
  simulation.submit(request, answers);
  run_to_end(simulation.engine);
  EXPECT_EQ(answers[0].told, std::vector<Token>(request.prompt.begin() + 1, request.prompt.end()));
  EXPECT_EQ(answers[0].report.cached_tokens, 0u);
  EXPECT_EQ(answers[1].tokens, drawn.tokens);
  EXPECT_EQ(answers[1].logits_hash, drawn.logits_hash);
  // Others start from what this one computes.
  EXPECT_GT(simulation.engine.prefix_cache().match_length(request.prompt, 0), 600u);
}

TEST(BatchEngine, WhoLosesItsPagesGoesOnLaterWithTheSameBits) {
  // Eight answers of 10 pages each, and room for 24.
  Simulation simulation(24 * kPageBytes);
  std::vector<std::vector<RecordedAnswer>> answers(8);
  std::vector<TestRequest> requests;
  for (std::uint64_t i = 0; i < answers.size(); ++i) {
    requests.push_back({.prompt = some_tokens(i, 64), .max_new_tokens = 570, .temperature = i % 2 == 0 ? 0.0 : 1.0, .seed = i});
    simulation.submit(requests.back(), answers[i]);
  }
  run_to_end(simulation.engine);
  EXPECT_GT(simulation.engine.stats().preemptions, 0u);
  EXPECT_EQ(answers[0][0].report.preemptions, 0u);
  for (std::size_t i = 0; i < answers.size(); ++i) expect_same(answers[i], alone(requests[i]));
}

TEST(BatchEngine, ARequestThatFillsTheWholeCacheIsComputed) {
  for (const std::vector<std::size_t>& windows : {std::vector<std::size_t>{0}, std::vector<std::size_t>{0, 100}}) {
    const TestRequest request{.prompt = some_tokens(1, 600), .max_new_tokens = 40};
    const std::uint64_t budget = SimulatedBackend::layout(windows).bytes_for(640, 512);
    Simulation simulation(budget, {}, windows);
    for (int round = 0; round < 3; ++round) {
      std::vector<RecordedAnswer> answers;
      simulation.submit(request, answers);
      std::vector<RecordedAnswer> other;
      simulation.submit({.prompt = some_tokens(2, 100)}, other);
      run_to_end(simulation.engine);
      expect_same(answers, alone(request, windows));
      EXPECT_EQ(other[0].ends, 1);
    }
  }
}

TEST(BatchEngine, HigherPriorityTakesPagesFromLower) {
  Simulation simulation(12 * kPageBytes);
  std::vector<RecordedAnswer> low;
  simulation.submit({.prompt = some_tokens(1, 500), .max_new_tokens = 200}, low);
  for (int i = 0; i < 20; ++i) simulation.engine.step();
  ASSERT_FALSE(low[0].tokens.empty());
  std::vector<RecordedAnswer> high;
  simulation.submit({.prompt = some_tokens(2, 500), .max_new_tokens = 20, .priority = 1}, high);
  run_to_end(simulation.engine);
  EXPECT_GT(low[0].report.preemptions, 0u);
  EXPECT_LT(high[0].report.ended, low[0].report.ended);
  expect_same(low, alone({.prompt = some_tokens(1, 500), .max_new_tokens = 200}));
}

TEST(BatchEngine, CancellingEndsBetweenSteps) {
  Simulation simulation(1 << 20);
  std::vector<RecordedAnswer> cancelled;
  std::vector<RecordedAnswer> other;
  const RequestId id = simulation.submit({.prompt = some_tokens(1, 100), .max_new_tokens = 1000}, cancelled);
  simulation.submit({.prompt = some_tokens(2, 100)}, other);
  for (int i = 0; i < 10; ++i) simulation.engine.step();
  simulation.engine.cancel(id);
  run_to_end(simulation.engine);
  EXPECT_EQ(cancelled[0].report.end, AnswerEnd::kCancelled);
  EXPECT_LT(cancelled[0].tokens.size(), 12u);
  expect_same(other, alone({.prompt = some_tokens(2, 100)}));
  simulation.engine.cancel(id);
}

TEST(BatchEngine, ADeadlineEndsWaitingAndRunningAnswers) {
  Simulation simulation(1 << 20, {.max_running = 1});
  std::vector<RecordedAnswer> running;
  std::vector<RecordedAnswer> waiting;
  auto first = make_request({.prompt = some_tokens(1, 100), .max_new_tokens = 1000}, kVocab, running);
  first.deadline_seconds = 2.0;
  auto second = make_request({.prompt = some_tokens(2, 100), .max_new_tokens = 1000}, kVocab, waiting);
  second.deadline_seconds = 1.0;
  simulation.engine.submit(std::move(first));
  simulation.engine.submit(std::move(second));
  run_to_end(simulation.engine);
  EXPECT_EQ(running[0].report.end, AnswerEnd::kDeadline);
  EXPECT_NEAR(running[0].report.ended, 2.0, 0.6);
  EXPECT_EQ(waiting[0].report.end, AnswerEnd::kDeadline);
  EXPECT_TRUE(waiting[0].tokens.empty());
}

TEST(BatchEngine, RefusesWhatCanNeverBeComputed) {
  Simulation simulation(8 * kPageBytes, {.max_running = 4, .max_waiting = 4});
  std::vector<RecordedAnswer> answers;
  const auto refused = [&](const TestRequest& request, ErrorKind kind = ErrorKind::kBadRequest) {
    return message_of(simulation.engine, make_request(request, kVocab, answers), kind);
  };
  EXPECT_NE(refused({}).find("the prompt is empty"), std::string::npos);
  EXPECT_NE(refused({.prompt = {1}, .max_new_tokens = 0}).find("no answer"), std::string::npos);
  EXPECT_NE(refused({.prompt = {1, 64}}).find("token id 64"), std::string::npos);
  EXPECT_NE(refused({.prompt = some_tokens(1, 3990), .max_new_tokens = 11}).find("exceed the context of 4000"), std::string::npos);
  EXPECT_NE(refused({.prompt = some_tokens(1, 500), .max_new_tokens = 13}).find("the whole budget"), std::string::npos);
  EXPECT_NE(refused({.prompt = {1}, .answers = 5}).find("5 answers"), std::string::npos);
  for (int i = 0; i < 4; ++i) {
    static std::vector<RecordedAnswer> queued[4];
    simulation.submit({.prompt = some_tokens(1, 400), .max_new_tokens = 3}, queued[i]);
  }
  EXPECT_NE(refused({.prompt = {1}}, ErrorKind::kOutOfMemory).find("queue is full"), std::string::npos);
  run_to_end(simulation.engine);
  EXPECT_EQ(answers[0].ends, 0);
}

TEST(BatchEngine, AListenerThatThrowsEndsItsOwnAnswerAlone) {
  Simulation simulation(1 << 20);
  std::vector<RecordedAnswer> bad;
  std::vector<RecordedAnswer> good;
  simulation.engine.submit(make_request({.prompt = some_tokens(1, 30)}, kVocab, bad, [](const RecordedAnswer& answer) -> bool {
    if (answer.tokens.size() == 4) throw std::runtime_error("broken pipe");
    return true;
  }));
  simulation.submit({.prompt = some_tokens(2, 30)}, good);
  run_to_end(simulation.engine);
  EXPECT_EQ(bad[0].report.end, AnswerEnd::kFailed);
  EXPECT_THROW(std::rethrow_exception(bad[0].report.error), std::runtime_error);
  expect_same(good, alone({.prompt = some_tokens(2, 30)}));
}

/// Fails whenever a step holds the token, after some rows went to the sink.
class FaultyBackend final : public StepBackend {
 public:
  explicit FaultyBackend(Token bad) : bad_(bad) {}
  void step(std::span<const SequenceTokens> requests, const StepSink& sink) override {
    // The sequences stay as they are when a sink throws.
    model_.step(requests, [&](std::size_t request, std::size_t row, std::span<const float> logits) {
      if (std::ranges::find(requests[request].tokens, bad_) != requests[request].tokens.end()) throw_bad_file("logits are not finite");
      sink(request, row, logits);
    });
  }
  [[nodiscard]] std::size_t chunk() const noexcept override { return model_.chunk(); }
  [[nodiscard]] std::size_t vocab_size() const noexcept override { return model_.vocab_size(); }
  [[nodiscard]] double now() const noexcept override { return model_.now(); }

 private:
  SimulatedBackend model_{{}};
  Token bad_;
};

TEST(BatchEngine, OnlyTheRequestAtFaultFails) {
  FaultyBackend backend(63);
  KvCache cache(SimulatedBackend::layout(std::vector<std::size_t>{0}), {.budget_bytes = 1 << 20, .context = 4000});
  BatchEngine engine(backend, cache);
  std::vector<std::vector<RecordedAnswer>> answers(5);
  std::vector<TestRequest> requests;
  for (std::uint64_t i = 0; i < answers.size(); ++i) {
    requests.push_back({.prompt = {static_cast<Token>(i), 2, 3}, .max_new_tokens = 6, .temperature = 1.0, .seed = i});
    if (i == 2) requests.back().prompt.push_back(63);
    engine.submit(make_request(requests.back(), kVocab, answers[i]));
  }
  run_to_end(engine);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto expected = alone(requests[i]);
    const bool faulty =
        i == 2 || std::ranges::find(expected[0].tokens.begin(), expected[0].tokens.end() - 1, Token{63}) != expected[0].tokens.end() - 1;
    EXPECT_EQ(answers[i][0].report.end == AnswerEnd::kFailed, faulty) << i;
    if (!faulty) expect_same(answers[i], expected);
  }
  EXPECT_THROW(std::rethrow_exception(answers[2][0].report.error), Error);
}

TEST(BatchEngine, SpeculationSavesStepsWhereTextRepeats) {
  SimulatedMachine machine;
  machine.memory = 1;
  machine.row_seconds = 0.0005;
  Simulation simulation(1 << 20, {}, {0}, machine);
  const TestRequest request{.prompt = some_tokens(1, 50), .max_new_tokens = 400};
  std::vector<RecordedAnswer> answers;
  simulation.submit(request, answers);
  run_to_end(simulation.engine);
  expect_same(answers, alone(request, {0}, 1));
  EXPECT_LT(simulation.engine.stats().steps, 150u);
  EXPECT_GT(answers[0].report.accepted_tokens, 200u);
  EXPECT_LE(answers[0].report.accepted_tokens, answers[0].report.drafted_tokens);
}

TEST(BatchEngine, SpeculationStaysAwayWhereItCostsMoreThanItGives) {
  // Rows cost as much as steps; and a text that never repeats.
  SimulatedMachine slow;
  slow.memory = 1;
  slow.weights_seconds = 0.0;
  SimulatedMachine plain;
  plain.row_seconds = 0.004;
  for (const SimulatedMachine& machine : {slow, plain}) {
    const auto seconds = [&](std::size_t most_draft) {
      BatchEngineOptions options;
      options.most_draft = most_draft;
      Simulation simulation(1 << 20, options, {0}, machine);
      std::vector<RecordedAnswer> answers;
      simulation.submit({.prompt = some_tokens(1, 50), .max_new_tokens = 400}, answers);
      run_to_end(simulation.engine);
      return answers[0].report.ended - answers[0].report.first_token;
    };
    EXPECT_LE(seconds(16), seconds(0) / 0.98);
  }
}

TEST(BatchEngine, AReferenceTextIsCopiedFaster) {
  SimulatedMachine machine;
  machine.row_seconds = 0.0005;
  // The answer itself serves as the text.
  const TestRequest request{.prompt = some_tokens(1, 50), .max_new_tokens = 200};
  const auto expected = alone(request);
  auto text = std::make_shared<SuffixAutomaton>();
  text->append(expected[0].tokens);
  Simulation simulation(1 << 20, {}, {0}, machine);
  std::vector<RecordedAnswer> answers;
  EngineRequest made = make_request(request, kVocab, answers);
  made.references = {text};
  simulation.engine.submit(std::move(made));
  run_to_end(simulation.engine);
  expect_same(answers, expected);
  EXPECT_LT(simulation.engine.stats().steps, 60u);
}

TEST(BatchEngine, AShortRequestPassesALongPrompt) {
  const auto time_to_first = [](bool beside_long) {
    Simulation simulation(1 << 22);
    std::vector<RecordedAnswer> warm;
    for (int i = 0; i < 5; ++i) {
      simulation.submit({.prompt = some_tokens(static_cast<std::uint64_t>(100 + i), 700)}, warm);
      run_to_end(simulation.engine);
    }
    std::vector<RecordedAnswer> long_answer;
    if (beside_long) simulation.submit({.prompt = some_tokens(1, 3900)}, long_answer);
    for (int i = 0; i < 3; ++i) simulation.engine.step();
    std::vector<RecordedAnswer> answers;
    simulation.submit({.prompt = some_tokens(2, 60)}, answers);
    run_to_end(simulation.engine);
    return answers[0].report.first_token - answers[0].report.submitted;
  };
  constexpr double kStepSeconds = 0.5;
  EXPECT_LE(time_to_first(true), 2.0 * time_to_first(false) + kStepSeconds);
}

/// Arrivals, lengths, shared prefixes, priorities, cancellations and small caches at random; every answer that was not cancelled equals the
/// one alone. 200 mixes and 10,000 requests in all.
TEST(BatchEngine, RandomMixesGiveEveryoneTheAnswerItGetsAlone) {
  std::uint64_t preemptions = 0;
  std::uint64_t accepted = 0;
  std::size_t found = 0;
  for (std::uint64_t mix = 0; mix < 200; ++mix) {
    Xoshiro256 random(mix);
    const std::vector<std::size_t> windows =
        mix % 3 == 0 ? std::vector<std::size_t>{0, 60 + random.below(100)} : std::vector<std::size_t>{0};
    SimulatedMachine machine;
    machine.chunk = 1 + random.below(200);
    machine.memory = mix % 2 == 0 ? 0 : 1 + random.below(2);
    machine.row_seconds = random.below(2) == 0 ? 0.005 : 0.0005;
    BatchEngineOptions options{.max_running = 1 + random.below(32)};
    options.most_draft = random.below(3) * 8;
    options.planner.least_prefill = 1 + random.below(64);
    const std::uint64_t budget = SimulatedBackend::layout(windows).bytes_for(300, machine.chunk) * (1 + random.below(6));
    Simulation simulation(budget, options, windows, machine);
    std::vector<std::vector<RecordedAnswer>> answers(50);
    std::vector<TestRequest> requests;
    std::vector<bool> cancelled(answers.size(), false);
    std::vector<RequestId> ids;
    while (ids.size() < answers.size() || !simulation.engine.idle()) {
      if (ids.size() < answers.size() && random.below(3) != 0) {
        TestRequest request{.prompt = some_tokens(random.below(4), 1 + random.below(200)),
                            .max_new_tokens = 1 + random.below(40),
                            .temperature = random.below(2) == 0 ? 0.0 : 1.0,
                            .seed = random.next(),
                            .priority = static_cast<int>(random.below(3))};
        request.prompt_logits = random.below(4) == 0;
        const auto own = some_tokens(random.below(8), random.below(50));
        request.prompt.insert(request.prompt.end(), own.begin(), own.end());
        if (simulation.engine.stats().running < 4 && options.max_running > 3 && machine.chunk > 3) request.answers = 1 + random.below(3);
        ids.push_back(simulation.submit(request, answers[ids.size()]));
        requests.push_back(std::move(request));
      }
      if (!ids.empty() && random.below(40) == 0) {
        const std::size_t victim = random.below(ids.size());
        simulation.engine.cancel(ids[victim]);
        cancelled[victim] = true;
      }
      simulation.engine.step();
      ASSERT_LE(simulation.cache.used_bytes(), budget);
    }
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (cancelled[i]) continue;
      expect_same(answers[i], alone(requests[i], windows, machine.memory));
      found += answers[i][0].report.cached_tokens;
    }
    preemptions += simulation.engine.stats().preemptions;
    accepted += simulation.engine.stats().accepted_tokens;
    EXPECT_EQ(simulation.engine.stats().prefix.idle_bytes, simulation.cache.used_bytes());
    if (testing::Test::HasFailure()) FAIL() << "mix " << mix;
  }
  EXPECT_GT(preemptions, 100u);
  EXPECT_GT(accepted, 1'000u);
  EXPECT_GT(found, 100'000u);
}

/// The same on a model, against one sequence in one call.
TEST(BatchEngine, AModelsAnswersAreThoseOfOneSequenceAlone) {
  for (const std::string family : {"qwen3", "gemma3"}) {
    const TinyModel& tiny = TinyModel::of(family);
    const std::size_t n_vocab = tiny.model().config().n_vocab;
    Forward forward = tiny.forward(100);
    ForwardBackend backend(forward);
    auto cache = tiny.cache(1000);
    BatchEngine engine(backend, *cache);
    std::vector<std::vector<RecordedAnswer>> answers(12);
    std::vector<TestRequest> requests;
    Xoshiro256 random(5);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      TestRequest request{
          .prompt = some_tokens(i % 3, 20 + random.below(200)), .max_new_tokens = 12, .temperature = i % 2 == 0 ? 0.0 : 1.0, .seed = i};
      engine.submit(make_request(request, n_vocab, answers[i]));
      requests.push_back(std::move(request));
      for (std::size_t steps = random.below(6); steps > 0; --steps) engine.step();
    }
    run_to_end(engine);
    Forward reference = tiny.forward(512);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      KvSequence sequence(*cache);
      SamplerSettings settings;
      settings.temperature = requests[i].temperature;
      settings.repeat_penalty = requests[i].temperature > 0.0 ? 1.1 : 1.0;
      settings.seed = requests[i].seed;
      Sampler sampler(settings, n_vocab);
      sampler.set_history(requests[i].prompt);
      std::vector<Token> tokens = requests[i].prompt;
      std::vector<RecordedAnswer> expected(1);
      Recorder recorder(expected);
      while (expected[0].tokens.size() < requests[i].max_new_tokens) {
        const auto logits = reference.prefill(sequence, sequence.length(), std::span(tokens).subspan(sequence.length()));
        tokens.push_back(sampler.next(logits));
        recorder.on_token(0, tokens.back(), logits);
      }
      EXPECT_EQ(answers[i][0].tokens, expected[0].tokens) << family << " " << i;
      EXPECT_EQ(answers[i][0].logits_hash, expected[0].logits_hash) << family << " " << i;
    }
  }
}

}  // namespace
}  // namespace quench
