#include "model/forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/cpu.h"
#include "base/error.h"
#include "model/tiny_model.h"

namespace quench {
namespace {

using Rows = std::vector<std::vector<float>>;

LogitSink collect(Rows& rows) {
  return [&rows](std::size_t row, std::span<const float> logits) {
    EXPECT_EQ(row, rows.size());
    rows.emplace_back(logits.begin(), logits.end());
  };
}

Isa best_isa() { return available_isas().back(); }

/// A loaded model with a cache, for one test.
class Bench {
 public:
  explicit Bench(const TinyModel& file, int threads = 2, std::size_t window = 0, CacheType type = CacheType::kF16)
      : pool(threads),
        model(file.load(pool, {.window = window})),
        cache(model.kv_layout(type), {.budget_bytes = 32 << 20, .context = 1000}) {}

  [[nodiscard]] Compute compute(Isa isa = best_isa()) { return {kernels_for(isa), pool}; }

  [[nodiscard]] Rows uncached(std::span<const TokenId> tokens) {
    Rows rows;
    forward_uncached(model, compute(), tokens, collect(rows), cache.layout().type);
    return rows;
  }
  [[nodiscard]] Rows cached(std::span<const TokenId> tokens, std::size_t chunk, Isa isa = best_isa()) {
    Rows rows;
    KvSequence sequence(cache);
    Forward(model, compute(isa), {.chunk = chunk}).prefill_all(sequence, 0, tokens, collect(rows));
    EXPECT_EQ(sequence.length(), tokens.size());
    return rows;
  }

  ThreadPool pool;
  Model model;
  KvCache cache;
};

/// Global and local layers, so that both groups of pages are at work.
TinyModel gemma_with_window() {
  TinyModel file("gemma3");
  file.set("attention.sliding_window", std::uint32_t{20});
  file.set("attention.sliding_window_pattern", std::uint32_t{3});
  return file;
}

std::vector<TinyModel> every_family() {
  std::vector<TinyModel> files;
  for (const char* name : {"qwen3", "qwen2", "llama", "qwen3moe", "qwen2moe"}) files.emplace_back(name);
  files.push_back(gemma_with_window());
  return files;
}

std::string message_of(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Forward, CachedEqualsUncachedForEveryFamilyAndChunk) {
  const std::vector<TokenId> tokens = tiny_tokens(150);
  for (const TinyModel& file : every_family()) {
    Bench bench(file);
    const Rows expected = bench.uncached(tokens);
    for (const std::size_t chunk : {1u, 2u, 3u, 7u, 16u, 63u, 64u, 65u, 128u, 511u}) {
      EXPECT_EQ(bench.cached(tokens, chunk), expected) << file.name << ", chunk " << chunk;
    }
  }
}

TEST(Forward, ThreadsAndInstructionSetsGiveTheSameBits) {
  const std::vector<TokenId> tokens = tiny_tokens(100);
  for (const Format format : {Format::kQ8_0, Format::kQ4_0, Format::kF16, Format::kF32}) {
    const TinyModel file("qwen3", format);
    const Rows expected = Bench(file, 1).cached(tokens, 16, Isa::kScalar);
    for (int threads = 1; threads <= 4; ++threads) {
      Bench bench(file, threads);
      for (const Isa isa : available_isas()) {
        EXPECT_EQ(bench.cached(tokens, 37, isa), expected) << format_info(format).name << ", " << threads << ", " << isa_name(isa);
      }
    }
  }
}

TEST(Forward, ExpertsOfManyTokensEqualThoseOfOne) {
  const std::vector<TokenId> tokens = tiny_tokens(90);
  for (const char* name : {"qwen3moe", "qwen2moe"}) {
    const TinyModel file(name, Format::kQ4_0);
    const Rows expected = Bench(file, 1).cached(tokens, 1, Isa::kScalar);
    for (int threads = 1; threads <= 3; ++threads) {
      Bench bench(file, threads);
      for (const Isa isa : available_isas()) EXPECT_EQ(bench.cached(tokens, 40, isa), expected) << name << ", " << isa_name(isa);
    }
  }
}

TEST(Forward, AnExpertTopPOfOneChangesNothingAndALowOneDoes) {
  const std::vector<TokenId> tokens = tiny_tokens(30);
  const TinyModel file("qwen3moe");
  ThreadPool pool(1);
  const auto logits_with = [&](float top_p) {
    const Model model = file.load(pool, {.expert_top_p = top_p});
    KvCache cache(model.kv_layout(), {.budget_bytes = 8 << 20, .context = 100});
    KvSequence sequence(cache);
    Forward forward(model, {kernels_for(best_isa()), pool});
    const auto logits = forward.prefill(sequence, 0, tokens);
    return std::vector<float>(logits.begin(), logits.end());
  };
  const std::vector<float> all = Bench(file, 1).cached(tokens, 512).back();
  EXPECT_EQ(logits_with(1.0f), all);
  EXPECT_NE(logits_with(0.3f), all);
}

TEST(Forward, AQ8CacheIsTheSameCachedAndUncachedOnEveryInstructionSet) {
  const std::vector<TokenId> tokens = tiny_tokens(150);
  for (const TinyModel& file : every_family()) {
    Bench bench(file, 2, 0, CacheType::kQ8_0);
    const Rows expected = bench.uncached(tokens);
    for (const std::size_t chunk : {1u, 7u, 64u, 200u})
      EXPECT_EQ(bench.cached(tokens, chunk), expected) << file.name << ", chunk " << chunk;
    for (const Isa isa : available_isas()) EXPECT_EQ(bench.cached(tokens, 40, isa), expected) << file.name << ", " << isa_name(isa);
    EXPECT_NE(expected, Bench(file).uncached(tokens)) << "f16 gives other logits";
  }
}

TEST(Forward, AQ8CacheOfHeadsThatAreNoWholeBlocksIsRefused) {
  ModelConfig config;
  config.head_dim = 80;
  EXPECT_EQ(message_of([&] { (void)make_kv_layout(config, CacheType::kQ8_0); }, ErrorKind::kUnsupported),
            "kv cache: q8_0 keeps channels in blocks of 32, but the heads have 80; use f16");
}

TEST(Forward, PagesSharedOutToManyThreadsGiveTheBitsOfOne) {
  const std::vector<TokenId> tokens = tiny_tokens(900);
  const auto prefix = std::span(tokens).first(880);
  for (const CacheType type : kCacheTypes) {
    for (const TinyModel& file : {TinyModel("qwen3"), gemma_with_window()}) {
      Bench one(file, 1, 0, type);
      const Rows expected = one.cached(tokens, 512);
      for (const int threads : {2, 3, 8}) {
        Bench many(file, threads, 0, type);
        Forward forward(many.model, many.compute());
        KvSequence sequence(many.cache);
        (void)forward.prefill(sequence, 0, prefix);
        for (std::size_t i = 880; i < 890; ++i) {
          const auto logits = forward.decode(sequence, i, tokens[i]);
          ASSERT_TRUE(std::ranges::equal(logits, expected[i])) << threads << " threads, position " << i;
        }
        const auto logits = forward.prefill(sequence, 890, std::span(tokens).subspan(890));
        EXPECT_TRUE(std::ranges::equal(logits, expected.back())) << threads << " threads";
      }
    }
  }
}

TEST(Forward, SequencesSideBySideGiveTheBitsOfEachAlone) {
  constexpr std::array<std::size_t, 4> kPaces = {1, 7, 30, 2};
  for (const CacheType type : kCacheTypes) {
    for (const TinyModel& file : every_family()) {
      Bench bench(file, 3, 0, type);
      std::array<Rows, kPaces.size()> expected;
      std::array<std::vector<TokenId>, kPaces.size()> tokens;
      std::vector<KvSequence> sequences;
      for (std::size_t i = 0; i < kPaces.size(); ++i) {
        tokens[i] = tiny_tokens(70 + 5 * i);
        std::ranges::rotate(tokens[i], tokens[i].begin() + static_cast<std::ptrdiff_t>(i));
        expected[i] = bench.cached(tokens[i], 512);
        sequences.emplace_back(bench.cache);
      }
      Forward forward(bench.model, bench.compute(), {.chunk = 64});
      std::size_t checked = 0;
      for (bool busy = true; busy;) {
        std::vector<SequenceTokens> requests;
        std::vector<std::size_t> who;
        for (std::size_t i = 0; i < kPaces.size(); ++i) {
          const std::size_t done = sequences[i].length();
          const auto next = std::span(tokens[i]).subspan(done, std::min(kPaces[i], tokens[i].size() - done));
          if (next.empty()) continue;
          // Every combination of what is wanted comes up.
          const auto wanted = static_cast<Wanted>((done / kPaces[i] + i) % 3);
          requests.push_back({&sequences[i], next, wanted});
          who.push_back(i);
        }
        busy = !requests.empty();
        std::vector<std::size_t> before;
        for (const std::size_t i : who) before.push_back(sequences[i].length());
        forward.step(requests, [&](std::size_t request, std::size_t row, std::span<const float> logits) {
          ++checked;
          EXPECT_TRUE(std::ranges::equal(logits, expected[who[request]][before[request] + row])) << file.name << ' ' << who[request];
        });
      }
      EXPECT_GT(checked, 100u);
      for (std::size_t i = 0; i < kPaces.size(); ++i) EXPECT_EQ(sequences[i].length(), tokens[i].size());
    }
  }
}

TEST(Forward, AStepThatCannotBeTakenAppendsNothing) {
  Bench bench{TinyModel("qwen3")};
  Forward forward(bench.model, bench.compute(), {.chunk = 64});
  KvSequence first(bench.cache);
  KvSequence second(bench.cache);
  const std::vector<TokenId> tokens = tiny_tokens(40);
  const std::vector<TokenId> wrong = {3, TinyModel::kVocab};
  const StepSink ignore = [](std::size_t, std::size_t, std::span<const float>) {};
  const auto refusal = [&](std::span<const SequenceTokens> requests) {
    return message_of([&] { forward.step(requests, ignore); }, ErrorKind::kBadRequest);
  };
  const std::vector<SequenceTokens> twice = {{&first, tokens}, {&first, std::span(tokens).first(1)}};
  EXPECT_EQ(refusal(twice), "forward: a sequence is in the step twice");
  const std::vector<SequenceTokens> many = {{&first, tokens}, {&second, tokens}};
  EXPECT_EQ(refusal(many), "forward: the step has 80 tokens, the chunk holds 64");
  const std::vector<SequenceTokens> unknown = {{&first, tokens}, {&second, wrong}};
  EXPECT_NE(refusal(unknown).find("100"), std::string::npos);
  EXPECT_EQ(first.length() + second.length(), 0u);
  EXPECT_EQ(bench.cache.used_bytes(), 0u);
}

TEST(Forward, AWindowOnAnyModelIsTheSameCachedAndUncached) {
  const std::vector<TokenId> tokens = tiny_tokens(150);
  for (const std::size_t window : {1u, 5u, 64u, 100u}) {
    Bench bench(TinyModel("qwen2"), 2, window);
    const Rows expected = bench.uncached(tokens);
    for (const std::size_t chunk : {1u, 7u, 64u, 200u}) EXPECT_EQ(bench.cached(tokens, chunk), expected) << window << ", chunk " << chunk;
  }
}

TEST(Forward, AWindowHidesWhatIsBehindIt) {
  // Three layers of window 5 reach back 3 x 4 positions.
  Bench bench(TinyModel("qwen2"), 1, 5);
  std::vector<TokenId> tokens = tiny_tokens(40);
  const Rows before = bench.cached(tokens, 64);
  tokens[10] = (tokens[10] + 1) % TinyModel::kVocab;
  const Rows after = bench.cached(tokens, 64);
  EXPECT_EQ(before[9], after[9]);
  EXPECT_NE(before[22], after[22]);
  EXPECT_EQ(before[23], after[23]);
}

TEST(Forward, TheLastRowAloneHasTheSameBits) {
  const std::vector<TokenId> tokens = tiny_tokens(130);
  for (const TinyModel& file : every_family()) {
    Bench bench(file);
    const Rows expected = bench.uncached(tokens);
    for (const std::size_t chunk : {1u, 64u, 129u, 512u}) {
      KvSequence sequence(bench.cache);
      Forward forward(bench.model, bench.compute(), {.chunk = chunk});
      const auto logits = forward.prefill(sequence, 0, tokens);
      EXPECT_TRUE(std::ranges::equal(logits, expected.back())) << file.name << ", chunk " << chunk;
    }
  }
}

TEST(Forward, DecodeContinuesAPrefill) {
  const std::vector<TokenId> tokens = tiny_tokens(80);
  for (const TinyModel& file : every_family()) {
    Bench bench(file);
    const Rows expected = bench.uncached(tokens);
    KvSequence sequence(bench.cache);
    Forward forward(bench.model, bench.compute());
    (void)forward.prefill(sequence, 0, std::span(tokens).first(50));
    for (std::size_t i = 50; i < tokens.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(forward.decode(sequence, i, tokens[i]), expected[i])) << file.name << " at " << i;
    }
  }
}

TEST(Forward, TruncateThenReplayGivesTheSameBits) {
  const std::vector<TokenId> tokens = tiny_tokens(140);
  Bench bench(TinyModel("qwen3"));
  const Rows expected = bench.uncached(tokens);
  KvSequence sequence(bench.cache);
  Forward forward(bench.model, bench.compute(), {.chunk = 64});
  (void)forward.prefill(sequence, 0, tokens);
  for (const std::size_t kept : {139u, 128u, 65u, 64u, 1u, 0u}) {
    // What comes instead of the truncated part must leave no trace.
    sequence.truncate(kept);
    (void)forward.decode(sequence, kept, 3);
    sequence.truncate(kept);
    const auto logits = forward.prefill(sequence, kept, std::span(tokens).subspan(kept));
    EXPECT_TRUE(std::ranges::equal(logits, expected.back())) << kept;
  }
}

TEST(Forward, TruncateInsideTheWindowThenReplayGivesTheSameBits) {
  const std::vector<TokenId> tokens = tiny_tokens(200);
  Bench bench(gemma_with_window());
  const Rows expected = bench.uncached(tokens);
  KvSequence sequence(bench.cache);
  Forward forward(bench.model, bench.compute(), {.chunk = 32});
  (void)forward.prefill(sequence, 0, tokens);
  const std::size_t kept = sequence.earliest_truncation();
  ASSERT_LT(kept, tokens.size());
  ASSERT_GT(kept, 0u);
  sequence.truncate(kept);
  EXPECT_TRUE(std::ranges::equal(forward.prefill(sequence, kept, std::span(tokens).subspan(kept)), expected.back()));
}

TEST(Forward, AForkContinuesOnItsOwn) {
  const std::vector<TokenId> tokens = tiny_tokens(90);
  Bench bench(gemma_with_window());
  const Rows expected = bench.uncached(tokens);
  KvSequence sequence(bench.cache);
  Forward forward(bench.model, bench.compute());
  (void)forward.prefill(sequence, 0, std::span(tokens).first(70));
  KvSequence fork = sequence.fork();
  (void)forward.decode(fork, 70, 1);
  EXPECT_TRUE(std::ranges::equal(forward.prefill(sequence, 70, std::span(tokens).subspan(70)), expected.back()));
}

TEST(Forward, OneCachedPositionReturnsItsValue) {
  // With one position the weights of attention are 1 whatever the scores are: queries and keys have no influence.
  TinyModel file("llama");
  const std::vector<TokenId> token = {5};
  const Rows before = Bench(file).cached(token, 1);
  for (float& value : file.tensor("blk.0.attn_q.weight").values) value *= -3.0f;
  for (float& value : file.tensor("blk.2.attn_k.weight").values) value = 0.1f;
  EXPECT_EQ(Bench(file).cached(token, 1), before);
  for (float& value : file.tensor("blk.0.attn_v.weight").values) value *= 2.0f;
  EXPECT_NE(Bench(file).cached(token, 1), before);
}

TEST(Forward, OptionalBiasesCount) {
  const std::vector<TokenId> tokens = tiny_tokens(20);
  const std::vector<std::pair<std::string, std::uint64_t>> biases = {
      {"blk.1.attn_q.bias", 128},  {"blk.1.attn_k.bias", 64}, {"blk.1.attn_v.bias", 64},  {"blk.1.attn_output.bias", 64},
      {"blk.1.ffn_gate.bias", 96}, {"blk.1.ffn_up.bias", 96}, {"blk.1.ffn_down.bias", 64}};
  const Rows plain = Bench(TinyModel("llama")).cached(tokens, 64);
  for (const auto& [name, size] : biases) {
    TinyModel file("llama");
    file.add(name, Format::kF32, {size}, 0.0f, 1.0f);
    Bench bench(file);
    const Rows biased = bench.cached(tokens, 64);
    EXPECT_NE(biased, plain) << name;
    EXPECT_EQ(biased, bench.uncached(tokens)) << name;
  }
}

TEST(Forward, SoftCapsBoundTheLogits) {
  TinyModel file("gemma3");
  file.set("final_logit_softcapping", 0.5f);
  file.set("attn_logit_softcapping", 2.0f);
  Bench bench(file);
  const std::vector<TokenId> tokens = tiny_tokens(20);
  const Rows capped = bench.cached(tokens, 7);
  EXPECT_EQ(capped, bench.uncached(tokens));
  for (const float logit : capped.back()) EXPECT_LE(std::fabs(logit), 0.5f);
}

TEST(Forward, AStepThatDoesNotStartAtTheLengthIsRefused) {
  Bench bench(TinyModel("qwen3"));
  KvSequence sequence(bench.cache);
  Forward forward(bench.model, bench.compute());
  (void)forward.prefill(sequence, 0, tiny_tokens(7));
  EXPECT_EQ(message_of([&] { (void)forward.decode(sequence, 5, 1); }, ErrorKind::kBadRequest),
            "forward: the tokens start at position 5, but the sequence holds 7");
  EXPECT_EQ(sequence.length(), 7u);
}

TEST(Forward, TokensOutsideTheVocabularyAreRefused) {
  Bench bench(TinyModel("qwen3"));
  KvSequence sequence(bench.cache);
  Forward forward(bench.model, bench.compute());
  const std::vector<TokenId> tokens = {1, 2, 100};
  const std::string expected = "forward: token id 100 (number 3 of 3) is outside the vocabulary of 100";
  EXPECT_EQ(message_of([&] { (void)forward.prefill(sequence, 0, tokens); }, ErrorKind::kBadRequest), expected);
  EXPECT_EQ(message_of([&] { (void)bench.uncached(tokens); }, ErrorKind::kBadRequest), expected);
  EXPECT_EQ(message_of([&] { (void)forward.prefill(sequence, 0, {}); }, ErrorKind::kBadRequest), "forward: no tokens");
}

TEST(Forward, TooLongAPromptIsRefusedBeforeAnyWork) {
  Bench bench(TinyModel("qwen3"));
  KvSequence sequence(bench.cache);
  Forward forward(bench.model, bench.compute(), {.chunk = 16});
  const std::string message = message_of([&] { (void)forward.prefill(sequence, 0, tiny_tokens(1001)); }, ErrorKind::kBadRequest);
  EXPECT_NE(message.find("1001"), std::string::npos) << message;
  EXPECT_NE(message.find("1000"), std::string::npos) << message;
  EXPECT_EQ(bench.cache.used_bytes(), 0u);
}

TEST(Forward, LogitsThatAreNotFiniteAreAnError) {
  TinyModel file("qwen3", Format::kF32);
  file.tensor("token_embd.weight").values[3 * TinyModel::kEmbed] = std::numeric_limits<float>::infinity();
  Bench bench(file);
  KvSequence sequence(bench.cache);
  Forward forward(bench.model, bench.compute());
  const std::string message = message_of([&] { (void)forward.prefill(sequence, 0, tiny_tokens(4)); }, ErrorKind::kBadFile);
  EXPECT_NE(message.find("logits at position 3 are not finite"), std::string::npos) << message;
  EXPECT_EQ(sequence.length(), 0u);
}

TEST(Forward, TheChunkShrinksToTheScratchLimit) {
  Bench bench(TinyModel("qwen3"));
  EXPECT_EQ(Forward(bench.model, bench.compute(), {.chunk = 512, .scratch_bytes = 1}).chunk(), 64u);
  EXPECT_EQ(Forward(bench.model, bench.compute(), {.chunk = 3, .scratch_bytes = 1}).chunk(), 3u);
  EXPECT_EQ(Forward(bench.model, bench.compute()).chunk(), 512u);
  (void)message_of([&] { (void)Forward(bench.model, bench.compute(), {.chunk = 0}); }, ErrorKind::kBadRequest);
}

}  // namespace
}  // namespace quench
