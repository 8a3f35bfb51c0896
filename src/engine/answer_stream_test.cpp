#include "engine/answer_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "engine/generator.h"
#include "engine/recorded_answers.h"
#include "engine/tiny_model.h"

namespace quench {
namespace {

constexpr std::size_t kContext = 600;

SamplerSettings sampled(std::uint64_t seed) {
  SamplerSettings settings;
  settings.temperature = 1.0;
  settings.seed = seed;
  return settings;
}

/// An engine on a tiny model, with a thread of its own.
struct Bench {
  explicit Bench(const BatchEngineOptions& options = {})
      : forward(tiny.forward()), cache(tiny.cache(kContext)), backend(forward), engine(backend, *cache, options), thread(engine) {}

  [[nodiscard]] StreamRequest request(std::uint64_t seed, std::size_t prompt_tokens, std::size_t new_tokens, std::size_t n = 1) const {
    StreamRequest request;
    for (std::size_t i = 0; i < prompt_tokens; ++i) request.prompt.push_back(static_cast<Token>((seed + i * i) % 251));
    for (std::size_t i = 0; i < n; ++i) request.samplers.emplace_back(sampled(seed + i), tiny.model().config().n_vocab);
    request.options.max_new_tokens = new_tokens;
    return request;
  }
  [[nodiscard]] AnswerStream start(StreamRequest request) { return AnswerStream(thread, tiny.tokenizer(), std::move(request)); }

  const TinyModel& tiny = TinyModel::of("qwen3");
  Forward forward;
  std::unique_ptr<KvCache> cache;
  ForwardBackend backend;
  BatchEngine engine;
  EngineThread thread;
};

void drain(AnswerStream& stream) {
  while (stream.next()) {
  }
}

TEST(AnswerStream, EventsTellTheWholeAnswerInOrder) {
  Bench bench;
  auto stream = bench.start(bench.request(1, 40, 20));
  std::vector<Token> tokens;
  std::string text;
  std::size_t prefilled = 0;
  bool ended = false;
  while (const auto event = stream.next()) {
    EXPECT_FALSE(ended);
    text += event->text;
    switch (event->kind) {
      case AnswerEvent::Kind::kPrefill: prefilled = event->done; break;
      case AnswerEvent::Kind::kToken: tokens.push_back(event->token); break;
      case AnswerEvent::Kind::kEnd: ended = true; break;
    }
  }
  EXPECT_TRUE(ended);
  EXPECT_TRUE(stream.done());
  EXPECT_EQ(prefilled, 40u);
  const GenerationResult result = stream.take();
  EXPECT_EQ(result.tokens, tokens);
  EXPECT_EQ(result.text, text);
  EXPECT_EQ(result.finish, FinishReason::kLength);
  EXPECT_EQ(result.stats.generated_tokens, 20u);
}

TEST(AnswerStream, LogProbabilitiesComeWithEachTokenWhenAskedFor) {
  Bench bench;
  auto request = bench.request(1, 40, 10);
  request.options.log_probabilities = 3;
  auto stream = bench.start(std::move(request));
  while (const auto event = stream.next()) {
    if (event->kind != AnswerEvent::Kind::kToken) continue;
    ASSERT_TRUE(event->log_probabilities);
    EXPECT_EQ(event->log_probabilities->chosen.token, event->token);
    EXPECT_LE(event->log_probabilities->chosen.log_probability, event->log_probabilities->top[0].log_probability);
    EXPECT_EQ(event->log_probabilities->top.size(), 3u);
  }
  EXPECT_EQ(stream.take().log_probabilities.size(), 10u);
}

TEST(AnswerStream, SeveralAnswersToOnePromptAreEachComplete) {
  Bench bench;
  auto stream = bench.start(bench.request(7, 40, 12, 3));
  drain(stream);
  ASSERT_EQ(stream.n_answers(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    // The same prompt, the i-th seed.
    auto request = bench.request(7, 40, 12);
    request.samplers.clear();
    request.samplers.emplace_back(sampled(7 + i), bench.tiny.model().config().n_vocab);
    auto single = bench.start(std::move(request));
    drain(single);
    EXPECT_EQ(stream.take(i).tokens, single.take().tokens) << i;
  }
}

TEST(AnswerStream, ManyThreadsGetTheAnswersThatTheyWouldGetAlone) {
  std::vector<std::vector<Token>> expected(12);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    Bench bench;
    auto stream = bench.start(bench.request(i, 20 + 17 * i, 25));
    drain(stream);
    expected[i] = stream.take().tokens;
  }
  Bench bench;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round) {
        auto stream = bench.start(bench.request(i, 20 + 17 * i, 25));
        if (round == 1 && i % 3 == 0) {
          static_cast<void>(stream.next());
          continue;  // dropped half way
        }
        drain(stream);
        EXPECT_EQ(stream.take().tokens, expected[i]);
      }
    });
  }
}

TEST(AnswerStream, ACancelledAnswerEnds) {
  Bench bench;
  auto stream = bench.start(bench.request(1, 40, 500));
  while (const auto event = stream.next()) {
    if (event->kind == AnswerEvent::Kind::kToken) break;
  }
  stream.cancel();
  drain(stream);
  const auto result = stream.take();
  EXPECT_EQ(result.finish, FinishReason::kCancelled);
  EXPECT_LT(result.tokens.size(), 500u);
}

TEST(AnswerStream, ADeadlineEndsAnAnswerAsItIs) {
  Bench bench;
  auto request = bench.request(1, 40, 500);
  request.options.deadline_seconds = 0.0;
  auto stream = bench.start(std::move(request));
  drain(stream);
  EXPECT_EQ(stream.take().finish, FinishReason::kDeadline);
}

TEST(AnswerStream, WhatCannotBeComputedIsRefusedAtOnce) {
  Bench bench;
  EXPECT_THROW(static_cast<void>(bench.start(bench.request(1, kContext, 1))), Error);
  EXPECT_THROW(static_cast<void>(bench.start(bench.request(1, 0, 1))), Error);
  auto request = bench.request(1, 5, 5);
  request.options.stop_texts = {""};
  EXPECT_THROW(static_cast<void>(bench.start(std::move(request))), Error);
}

TEST(AnswerStream, AFullQueueRefusesAndTheRestIsAnswered) {
  Bench bench({.max_running = 1, .max_waiting = 2});
  std::vector<AnswerStream> streams;
  std::size_t refused = 0;
  for (std::uint64_t i = 0; i < 30; ++i) {
    try {
      streams.push_back(bench.start(bench.request(i, 100, 50)));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0u);
  for (auto& stream : streams) {
    drain(stream);
    EXPECT_EQ(stream.take().tokens.size(), 50u);
  }
}

TEST(AnswerStream, WhatIsUnderWayWhenTheEngineEndsIsCancelled) {
  std::optional<AnswerStream> stream;
  const TinyModel& tiny = TinyModel::of("qwen3");
  auto forward = tiny.forward();
  const auto cache = tiny.cache(kContext);
  ForwardBackend backend(forward);
  BatchEngine engine(backend, *cache);
  {
    EngineThread thread(engine);
    StreamRequest request;
    request.prompt = {1, 2, 3};
    request.samplers.emplace_back(sampled(1), tiny.model().config().n_vocab);
    request.options.max_new_tokens = 500;
    stream.emplace(thread, tiny.tokenizer(), std::move(request));
    static_cast<void>(stream->next());
  }
  drain(*stream);
  EXPECT_EQ(stream->take().finish, FinishReason::kCancelled);
}

TEST(EngineThread, AFailedStepFailsItsAnswersAndTheNextAreComputed) {
  Bench bench;
  auto stream = bench.start(bench.request(1, 40, 300));
  bench.thread.between_steps([](BatchEngine& engine) { engine.fail_all(std::make_exception_ptr(std::runtime_error("no memory"))); });
  drain(stream);
  EXPECT_THROW(static_cast<void>(stream.take()), std::runtime_error);
  auto next = bench.start(bench.request(1, 40, 3));
  drain(next);
  EXPECT_EQ(next.take().tokens.size(), 3u);
}

TEST(EngineThread, WorkBetweenStepsThrowsWhereItWasAskedFor) {
  Bench bench;
  EXPECT_THROW(bench.thread.between_steps([](BatchEngine&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(bench.thread.stats().running, 0u);
}

TEST(SharedGenerator, GivesWhatALocalEngineGivesAndCallsHooksOnItsOwnThread) {
  Bench bench;
  SharedGenerator generator(bench.thread);
  const std::vector<Token> prompt = bench.request(3, 60, 0).prompt;
  const auto here = std::this_thread::get_id();
  std::string text;
  GenerationHooks hooks;
  hooks.on_text = [&](std::string_view piece) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    text += piece;
  };
  Sampler shared(sampled(5), generator.vocab_size());
  const auto result = generator.generate(bench.tiny.tokenizer(), shared, prompt, {.max_new_tokens = 20}, hooks);
  EXPECT_EQ(result.text, text);

  auto forward = bench.tiny.forward();
  const auto cache = bench.tiny.cache(kContext);
  ForwardBackend backend(forward);
  BatchEngine engine(backend, *cache);
  LocalGenerator local(engine);
  Sampler own(sampled(5), local.vocab_size());
  EXPECT_EQ(local.generate(bench.tiny.tokenizer(), own, prompt, {.max_new_tokens = 20}, {}).tokens, result.tokens);
  // Both samplers go on from the same place.
  EXPECT_EQ(local.generate(bench.tiny.tokenizer(), own, prompt, {.max_new_tokens = 20}, {}).tokens,
            generator.generate(bench.tiny.tokenizer(), shared, prompt, {.max_new_tokens = 20}, {}).tokens);
}

TEST(SharedGenerator, ACancelFlagAndAThrowingHookEndTheAnswer) {
  Bench bench;
  SharedGenerator generator(bench.thread);
  Sampler sampler(sampled(5), generator.vocab_size());
  std::atomic<bool> cancel{true};
  const std::vector<Token> prompt = bench.request(3, 60, 0).prompt;
  GenerationHooks hooks;
  hooks.cancel = &cancel;
  EXPECT_EQ(generator.generate(bench.tiny.tokenizer(), sampler, prompt, {.max_new_tokens = 500}, hooks).finish, FinishReason::kCancelled);
  GenerationHooks throwing;
  throwing.on_token = [](Token) { throw std::runtime_error("enough"); };
  EXPECT_THROW(static_cast<void>(generator.generate(bench.tiny.tokenizer(), sampler, prompt, {.max_new_tokens = 500}, throwing)),
               std::runtime_error);
}

}  // namespace
}  // namespace quench
