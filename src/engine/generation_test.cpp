#include "engine/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "engine/tiny_model.h"

namespace quench {
namespace {

constexpr std::size_t kContext = 600;

std::vector<Token> prompt_of(std::size_t size) {
  std::vector<Token> prompt;
  for (std::size_t i = 0; i < size; ++i) prompt.push_back(static_cast<Token>(i * i % 251));
  return prompt;
}

SamplerSettings sampled(std::uint64_t seed = 1) {
  SamplerSettings settings;
  settings.temperature = 1.0;
  settings.seed = seed;
  return settings;
}

/// An engine on a tiny model.
struct Bench {
  explicit Bench(const std::string& family = "qwen3", std::size_t chunk = 512)
      : tiny(TinyModel::of(family)), forward(tiny.forward(chunk)), cache(tiny.cache(kContext)), backend(forward), engine(backend, *cache) {}

  GenerationResult generate(const std::vector<Token>& prompt, const GenerationOptions& options, const GenerationHooks& hooks = {},
                            const SamplerSettings& settings = sampled()) {
    Sampler sampler(settings, tiny.model().config().n_vocab);
    return quench::generate(engine, tiny.tokenizer(), sampler, prompt, options, hooks);
  }

  const TinyModel& tiny;
  Forward forward;
  std::unique_ptr<KvCache> cache;
  ForwardBackend backend;
  BatchEngine engine;
};

TEST(Generation, ChunksAndCachedPrefixesGiveTheSameTokens) {
  for (const std::string family : {"qwen3", "gemma3"}) {
    const auto prompt = prompt_of(200);
    Bench whole(family);
    const auto wanted = whole.generate(prompt, {.max_new_tokens = 30});
    EXPECT_EQ(wanted.stats.cached_tokens, 0u);
    EXPECT_EQ(wanted.stats.prompt_tokens, 200u);
    EXPECT_EQ(wanted.tokens.size(), 30u);
    EXPECT_EQ(wanted.finish, FinishReason::kLength);
    Bench chunked(family, 7);
    EXPECT_EQ(chunked.generate(prompt, {.max_new_tokens = 30}).tokens, wanted.tokens);
    const auto again = chunked.generate(prompt, {.max_new_tokens = 30});
    EXPECT_EQ(again.tokens, wanted.tokens);
    if (family == "qwen3") {
      EXPECT_EQ(again.stats.cached_tokens, 199u);
    }
    // Another text in between, with a common start.
    auto other = prompt;
    other.resize(150);
    other.back() += 1;
    static_cast<void>(chunked.generate(other, {.max_new_tokens = 5}));
    EXPECT_EQ(chunked.generate(prompt, {.max_new_tokens = 30}).tokens, wanted.tokens);
  }
}

TEST(Generation, AnImpossiblePromptIsAnErrorWithBothNumbersAndNoWork) {
  Bench bench;
  const auto complaint = [&](const std::vector<Token>& prompt, const GenerationOptions& options) -> std::string {
    try {
      static_cast<void>(bench.generate(prompt, options));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadRequest);
      return error.what();
    }
    return {};
  };
  EXPECT_NE(complaint({}, {}), "");
  EXPECT_NE(complaint({99999}, {}).find("99999"), std::string::npos);
  const auto overflow = complaint(prompt_of(kContext), {});
  EXPECT_NE(overflow.find("600 tokens and the context 600"), std::string::npos) << overflow;
  const auto too_many = complaint(prompt_of(500), {.max_new_tokens = 101, .must_fit = true});
  EXPECT_NE(too_many.find("500 prompt tokens and 101 new ones exceed the context of 600"), std::string::npos) << too_many;
  EXPECT_NE(complaint({1}, {.max_new_tokens = 0}).find("no answer"), std::string::npos);
  EXPECT_EQ(bench.engine.stats().steps, 0u);
  EXPECT_EQ(complaint(prompt_of(500), {.max_new_tokens = 100, .must_fit = true}), "");
}

TEST(Generation, EndsWhenTheContextIsFull) {
  Bench bench;
  const auto result = bench.generate(prompt_of(590), {.max_new_tokens = 100});
  EXPECT_EQ(result.finish, FinishReason::kContextFull);
  EXPECT_EQ(result.tokens.size(), 10u);
}

TEST(Generation, AStopIdEndsTheAnswerAndIsNotPartOfIt) {
  Bench bench;
  const auto plain = bench.generate(prompt_of(20), {.max_new_tokens = 20});
  const Token stop = plain.tokens[10];
  const auto first = static_cast<std::size_t>(std::ranges::find(plain.tokens, stop) - plain.tokens.begin());
  const auto stopped = bench.generate(prompt_of(20), {.max_new_tokens = 20, .stop_ids = {stop}});
  EXPECT_EQ(stopped.finish, FinishReason::kEndToken);
  EXPECT_EQ(stopped.end_token, stop);
  EXPECT_EQ(stopped.tokens, std::vector(plain.tokens.begin(), plain.tokens.begin() + static_cast<std::ptrdiff_t>(first)));
}

TEST(Generation, AStopTextIsHeldBackAndCutOut) {
  Bench bench;
  const auto plain = bench.generate(prompt_of(20), {.max_new_tokens = 40});
  ASSERT_GT(plain.text.size(), 20u);
  // Some ASCII from the middle of what the model says.
  std::size_t at = 10;
  const auto ascii = [&] { return std::ranges::all_of(plain.text.substr(at, 3), [](char c) { return c > 0; }); };
  while (at + 3 < plain.text.size() && !ascii()) ++at;
  const std::string stop = plain.text.substr(at, 3);
  std::string streamed;
  const auto stopped = bench.generate(prompt_of(20), {.max_new_tokens = 40, .stop_texts = {"never said", stop}},
                                      {.on_text = [&](std::string_view text) { streamed += text; }});
  EXPECT_EQ(stopped.finish, FinishReason::kStopText);
  EXPECT_EQ(stopped.stop_text, 1u);
  EXPECT_EQ(stopped.text, plain.text.substr(0, plain.text.find(stop)));
  EXPECT_EQ(streamed, stopped.text);
}

TEST(Generation, TextAndTokensAreStreamedAsTheyAre) {
  Bench bench;
  std::string streamed;
  std::vector<Token> tokens;
  std::vector<std::size_t> prefilled;
  const auto result = bench.generate(prompt_of(20), {.max_new_tokens = 30},
                                     {.on_text = [&](std::string_view text) { streamed += text; },
                                      .on_token = [&](Token token) { tokens.push_back(token); },
                                      .on_prefill =
                                          [&](std::size_t done, std::size_t total) {
                                            prefilled.push_back(done);
                                            EXPECT_EQ(total, 20u);
                                          }});
  EXPECT_EQ(streamed, result.text);
  EXPECT_EQ(tokens, result.tokens);
  EXPECT_EQ(prefilled, (std::vector<std::size_t>{20}));
}

TEST(Generation, CancellingLeavesAPrefixInTheCache) {
  Bench bench("qwen3", 8);
  std::atomic<bool> cancel = false;
  const auto prompt = prompt_of(40);
  const auto early =
      bench.generate(prompt, {}, {.on_prefill = [&](std::size_t done, std::size_t) { cancel = done >= 16; }, .cancel = &cancel});
  EXPECT_EQ(early.finish, FinishReason::kCancelled);
  EXPECT_TRUE(early.tokens.empty());
  EXPECT_EQ(bench.engine.prefix_cache().match_length(prompt), 16u);
  cancel = false;
  int count = 0;
  const auto late = bench.generate(prompt, {}, {.on_token = [&](Token) { cancel = ++count == 3; }, .cancel = &cancel});
  EXPECT_EQ(late.finish, FinishReason::kCancelled);
  EXPECT_EQ(late.tokens.size(), 3u);
  EXPECT_EQ(late.stats.cached_tokens, 16u);
  EXPECT_GE(bench.engine.prefix_cache().match_length(prompt), 40u);
}

TEST(Generation, AnExceptionFromACallbackLeavesAUsableEngine) {
  Bench bench;
  const auto prompt = prompt_of(40);
  const auto wanted = Bench().generate(prompt, {.max_new_tokens = 10}).tokens;
  int count = 0;
  const auto thrower = [&](Token) {
    if (++count == 3) throw std::runtime_error("full disk");
  };
  EXPECT_THROW(static_cast<void>(bench.generate(prompt, {}, {.on_token = thrower})), std::runtime_error);
  EXPECT_EQ(bench.generate(prompt, {.max_new_tokens = 10}).tokens, wanted);
}

}  // namespace
}  // namespace quench
