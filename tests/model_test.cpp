#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "assets.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "gguf/reader.h"
#include "model/forward.h"

namespace quench {
namespace {

/// A real model and what is known about it.
struct RealModel {
  std::string_view file;
  std::vector<TokenId> prompt;        ///< "The capital of France is"
  std::vector<TokenId> continuation;  ///< greedy, as llama.cpp 0.3.36's Python package gives it; margins above 0.5
  std::uint64_t logits_hash;          ///< of all rows of the prompt: the numeric contract, version 1
};

const RealModel kSmol{kSmolLm2, {504, 3575, 282, 4649, 314}, {7042, 30, 198, 198}, 3781594204427711945u};
const RealModel kGemma{kGemma3, {2, 818, 5279, 529, 7001, 563}, {506, 5279, 529, 506}, 12230939258785074818u};

std::uint64_t hash_of(std::uint64_t hash, std::span<const float> values) {
  for (const float value : values) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001B3u;
  return hash;
}

/// A loaded model with a cache.
struct Loaded {
  explicit Loaded(const std::filesystem::path& path)
      : pool(2), model(Model::load(gguf::Reader(path), {}, pool)), cache(model.kv_layout(), {.budget_bytes = 64 << 20, .context = 2048}) {}
  [[nodiscard]] std::uint64_t hash_logits(std::span<const TokenId> tokens, std::size_t chunk, Isa isa) {
    std::uint64_t hash = 0xCBF29CE484222325u;
    KvSequence sequence(cache);
    Forward forward(model, {kernels_for(isa), pool}, {.chunk = chunk});
    forward.prefill_all(sequence, 0, tokens, [&](std::size_t, std::span<const float> logits) { hash = hash_of(hash, logits); });
    return hash;
  }

  ThreadPool pool;
  Model model;
  KvCache cache;
};

void check(const RealModel& real) {
  const auto path = asset(real.file);
  if (!path) GTEST_SKIP() << missing_asset(real.file);
  Loaded loaded(*path);
  for (const Isa isa : available_isas()) {
    EXPECT_EQ(loaded.hash_logits(real.prompt, 512, isa), real.logits_hash) << isa_name(isa);
    EXPECT_EQ(loaded.hash_logits(real.prompt, 2, isa), real.logits_hash) << isa_name(isa);
  }

  KvSequence sequence(loaded.cache);
  Forward forward(loaded.model, {kernels_for(available_isas().back()), loaded.pool});
  auto logits = forward.prefill(sequence, 0, real.prompt);
  for (const TokenId expected : real.continuation) {
    const auto best = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
    EXPECT_EQ(best, expected);
    logits = forward.decode(sequence, sequence.length(), expected);
  }
}

TEST(RealModel, SmolLm2GivesItsGoldenLogitsAndContinuation) { check(kSmol); }

TEST(RealModel, Gemma3GivesItsGoldenLogitsAndContinuation) { check(kGemma); }

TEST(RealModel, LoadingTakesLittleMoreThanTheFile) {
  const auto path = asset(kSmolLm2);
  if (!path) GTEST_SKIP() << missing_asset(kSmolLm2);
  const gguf::Reader reader(*path);
  ThreadPool pool(2);
  const std::uint64_t before = resident_bytes();
  const Model model = Model::load(reader, {}, pool);
  const std::uint64_t taken = resident_bytes() - std::min(before, resident_bytes());
  EXPECT_LE(taken, reader.total_file_bytes() * 11 / 10);
  EXPECT_LE(model.weight_bytes(), reader.total_file_bytes());
}

}  // namespace
}  // namespace quench
