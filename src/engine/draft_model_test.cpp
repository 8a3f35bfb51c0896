#include "engine/draft_model.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "base/random.h"
#include "engine/batch_engine.h"
#include "engine/recorded_answers.h"
#include "engine/simulated_backend.h"
#include "engine/tiny_model.h"

namespace quench {
namespace {

constexpr std::size_t kVocab = 64;

std::vector<Token> some_tokens(std::uint64_t seed, std::size_t n) {
  Xoshiro256 random(seed);
  std::vector<Token> tokens(n);
  for (Token& token : tokens) token = static_cast<Token>(random.below(kVocab));
  return tokens;
}

/// A simulated model and a second one that says the same (memory 0: what all tokens lead to), or something else, for less time.
struct Pair {
  explicit Pair(std::size_t draft_memory = 0, std::uint64_t draft_budget = 1 << 22, std::vector<std::size_t> windows = {0})
      : backend(SimulatedMachine{}),
        cache(SimulatedBackend::layout(windows), {.budget_bytes = 1 << 22, .context = 4000}),
        draft_backend(SimulatedMachine{.weights_seconds = 0.001, .row_seconds = 0.0001, .memory = draft_memory}),
        draft_cache(SimulatedBackend::layout(windows), {.budget_bytes = draft_budget, .context = 4000}),
        draft(draft_backend, draft_cache),
        engine(backend, cache, {.draft = &draft}) {}

  SimulatedBackend backend;
  KvCache cache;
  SimulatedBackend draft_backend;
  KvCache draft_cache;
  DraftModel draft;
  BatchEngine engine;
};

std::vector<RecordedAnswer> alone(const TestRequest& request) {
  SimulatedBackend backend(SimulatedMachine{});
  const std::vector<std::size_t> windows{0};
  KvCache cache(SimulatedBackend::layout(windows), {.budget_bytes = 1 << 22, .context = 4000});
  BatchEngine engine(backend, cache, {.most_draft = 0});
  std::vector<RecordedAnswer> answers;
  engine.submit(make_request(request, kVocab, answers));
  run_to_end(engine);
  return answers;
}

TEST(DraftModel, ASecondModelThatSaysTheSameMakesDecodingFaster) {
  const TestRequest request{.prompt = some_tokens(1, 100), .max_new_tokens = 200};
  Pair pair;
  std::vector<RecordedAnswer> answers;
  // The engine has run before, and knows its steps' times.
  pair.engine.submit(make_request({.prompt = some_tokens(2, 50), .max_new_tokens = 50}, kVocab, answers));
  run_to_end(pair.engine);
  pair.engine.submit(make_request(request, kVocab, answers));
  run_to_end(pair.engine);
  const auto expected = alone(request);
  EXPECT_EQ(answers[0].tokens, expected[0].tokens);
  EXPECT_EQ(answers[0].logits_hash, expected[0].logits_hash);
  const auto& report = answers[0].report;
  EXPECT_GT(report.accepted_tokens, 100u);
  EXPECT_GT(report.accepted_tokens * 10, report.drafted_tokens * 9);
  const double seconds = report.ended - report.first_token;
  const double expected_seconds = expected[0].report.ended - expected[0].report.first_token;
  EXPECT_LT(seconds * 1.5, expected_seconds);
  EXPECT_EQ(pair.draft_cache.used_bytes(), 0u) << "an answer that ended holds no pages";
}

TEST(DraftModel, OneThatIsWrongIsHardlyAskedAndChangesNothing) {
  const TestRequest request{.prompt = some_tokens(1, 100), .max_new_tokens = 400, .temperature = 1.0, .seed = 9};
  Pair pair(/*draft_memory=*/3);
  std::vector<RecordedAnswer> answers;
  pair.engine.submit(make_request(request, kVocab, answers));
  run_to_end(pair.engine);
  const auto expected = alone(request);
  EXPECT_EQ(answers[0].tokens, expected[0].tokens);
  EXPECT_EQ(answers[0].logits_hash, expected[0].logits_hash);
  // The text itself gives guesses, too.
  Pair without;
  BatchEngine plain(without.backend, without.cache);
  std::vector<RecordedAnswer> plain_answers;
  plain.submit(make_request(request, kVocab, plain_answers));
  run_to_end(plain);
  EXPECT_LT(answers[0].report.drafted_tokens, plain_answers[0].report.drafted_tokens + 60);
}

TEST(DraftModel, RandomMixesGiveWhatEachRequestGivesAlone) {
  Xoshiro256 random(5);
  std::uint64_t accepted = 0;
  for (int mix = 0; mix < 40; ++mix) {
    // With little room of its own the draft model guesses for some only.
    Pair pair(mix % 3 == 0 ? 4 : 0, mix % 4 == 0 ? 12 << 10 : 1 << 22);
    std::vector<TestRequest> requests(1 + random.below(8));
    std::vector<std::vector<RecordedAnswer>> answers(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i] = {.prompt = some_tokens(random.below(4), 1 + random.below(700)),
                     .max_new_tokens = 1 + random.below(80),
                     .answers = 1 + random.below(2),
                     .temperature = random.below(2) == 0 ? 0.0 : 0.3,
                     .seed = random.below(1000)};
      pair.engine.submit(make_request(requests[i], kVocab, answers[i]));
      for (std::uint64_t steps = random.below(4); steps > 0; --steps) pair.engine.step();
    }
    run_to_end(pair.engine);
    accepted += pair.engine.stats().accepted_tokens;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto expected = alone(requests[i]);
      for (std::size_t j = 0; j < expected.size(); ++j) {
        ASSERT_EQ(answers[i][j].tokens, expected[j].tokens) << "mix " << mix << " request " << i;
        ASSERT_EQ(answers[i][j].logits_hash, expected[j].logits_hash);
      }
    }
    ASSERT_EQ(pair.draft_cache.used_bytes(), 0u);
  }
  EXPECT_GT(accepted, 500u);
}

TEST(DraftModel, OneThatFailsIsLeftOut) {
  class Failing final : public StepBackend {
   public:
    void step(std::span<const SequenceTokens>, const StepSink&) override { throw std::runtime_error("no numbers"); }
    [[nodiscard]] std::size_t chunk() const noexcept override { return 64; }
    [[nodiscard]] std::size_t vocab_size() const noexcept override { return kVocab; }
    [[nodiscard]] double now() const noexcept override { return 0.0; }
  };
  Pair pair;
  Failing failing;
  DraftModel draft(failing, pair.draft_cache);
  BatchEngine engine(pair.backend, pair.cache, {.draft = &draft});
  const TestRequest request{.prompt = some_tokens(1, 100), .max_new_tokens = 100};
  std::vector<RecordedAnswer> answers;
  engine.submit(make_request(request, kVocab, answers));
  run_to_end(engine);
  EXPECT_EQ(answers[0].tokens, alone(request)[0].tokens);
}

TEST(DraftModel, ARealModelGuessesItsOwnAnswers) {
  for (const std::string family : {"qwen3", "gemma3"}) {
    const TinyModel& tiny = TinyModel::of(family);
    auto forward = tiny.forward();
    auto draft_forward = tiny.forward(64);
    const auto cache = tiny.cache(900);
    const auto draft_cache = tiny.cache(900);
    ForwardBackend backend(forward);
    ForwardBackend draft_backend(draft_forward);
    DraftModel draft(draft_backend, *draft_cache);
    std::vector<Token> tokens = some_tokens(3, 300);
    DraftSequence sequence = draft.new_sequence();
    std::vector<Token> guesses;
    const DraftModel::Wish wish{.sequence = &sequence, .tokens = tokens, .most = 6, .guesses = &guesses};
    int calls = 0;
    while (guesses.empty() && calls < 20) {
      draft.propose({&wish, 1});
      ++calls;
    }
    EXPECT_EQ(calls, 5) << "a chunk of 64 in each call";
    EXPECT_EQ(guesses.size(), 6u);
    BatchEngine engine(backend, *cache, {.most_draft = 0});
    std::vector<RecordedAnswer> answers;
    engine.submit(make_request({.prompt = tokens, .max_new_tokens = 6}, tiny.model().config().n_vocab, answers));
    run_to_end(engine);
    EXPECT_EQ(guesses, answers[0].tokens);
    // Another token than the guessed one: the rest is taken back.
    tokens.push_back(static_cast<Token>((guesses[0] + 1) % kVocab));
    const DraftModel::Wish next{.sequence = &sequence, .tokens = tokens, .most = 3, .guesses = &guesses};
    for (int i = 0; i < 20 && (i == 0 || guesses.empty()); ++i) draft.propose({&next, 1});
    engine.submit(make_request({.prompt = tokens, .max_new_tokens = 3}, tiny.model().config().n_vocab, answers));
    run_to_end(engine);
    EXPECT_EQ(guesses, answers[0].tokens);
  }
}

}  // namespace
}  // namespace quench
