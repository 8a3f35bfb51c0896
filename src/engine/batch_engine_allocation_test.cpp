// Counts every allocation of this program: the engine's promise that running answers cost none. And refuses them: that it fails the answers
// it has no memory for, and nothing else.
// The thread sanitizer brings operators new and delete of its own, which cannot be replaced.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUENCH_THREAD_SANITIZER
#endif
#endif

#ifndef QUENCH_THREAD_SANITIZER

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/answer_stream.h"
#include "engine/batch_engine.h"
#include "engine/recorded_answers.h"
#include "engine/simulated_backend.h"
#include "engine/tiny_model.h"

namespace {

std::atomic<std::size_t> n_allocations{0};
thread_local bool no_memory = false;

void* counted(std::size_t bytes, std::size_t alignment) {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  if (no_memory) throw std::bad_alloc();
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<std::size_t>(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace quench {
namespace {

class Silent final : public RequestListener {
 public:
  bool on_token(std::size_t, Token, std::span<const float>) override { return true; }
  void on_end(std::size_t, const AnswerReport&, Sampler&) noexcept override {}
};

TEST(BatchEngine, AThousandStepsInSteadyStateAllocateNothing) {
  SimulatedMachine machine;
  machine.memory = 2;
  machine.row_seconds = 0.001;
  SimulatedBackend backend(machine);
  KvCache cache(SimulatedBackend::layout(std::vector<std::size_t>{0, 100}), {.budget_bytes = 1 << 22, .context = 20'000});
  BatchEngine engine(backend, cache);
  const auto submit = [&](std::size_t tokens) {
    for (std::uint64_t i = 0; i < 16; ++i) {
      EngineRequest request;
      request.prompt = {static_cast<Token>(i), 1, 2};
      request.max_new_tokens = tokens;
      SamplerSettings settings;
      settings.temperature = i % 2 == 0 ? 0.0 : 1.0;
      settings.top_k = 20;
      settings.seed = i;
      request.samplers.emplace_back(settings, machine.vocab_size);
      request.listener = std::make_unique<Silent>();
      engine.submit(std::move(request));
    }
  };
  // Pages are taken from the system once.
  submit(16'000);
  run_to_end(engine);
  engine.prefix_cache().clear();
  submit(16'000);
  for (int i = 0; i < 50; ++i) engine.step();
  const std::size_t before = n_allocations.load();
  for (int i = 0; i < 1000; ++i) engine.step();
  EXPECT_EQ(n_allocations.load(), before);
  EXPECT_EQ(engine.stats().running, 16u);
}

/// A model whose thread has no memory any more from the logits of one step on.
class Starving final : public StepBackend {
 public:
  explicit Starving(StepBackend& backend) : backend_(backend) {}

  void step(std::span<const SequenceTokens> requests, const StepSink& sink) override {
    n_steps_ += 1;
    backend_.step(requests, [&](std::size_t request, std::size_t row, std::span<const float> logits) {
      if (n_steps_ == starving_step) no_memory = true;
      sink(request, row, logits);
    });
  }
  [[nodiscard]] std::size_t chunk() const noexcept override { return backend_.chunk(); }
  [[nodiscard]] std::size_t vocab_size() const noexcept override { return backend_.vocab_size(); }
  [[nodiscard]] double now() const noexcept override { return backend_.now(); }

  std::size_t starving_step = 0;

 private:
  StepBackend& backend_;
  std::size_t n_steps_ = 0;
};

TEST(AnswerStream, WhenMemoryRunsOutEveryAnswerEndsAndTheEngineGoesOn) {
  const TinyModel& tiny = TinyModel::of("qwen3");
  Forward forward = tiny.forward();
  const auto cache = tiny.cache(600);
  ForwardBackend model(forward);
  for (std::size_t step = 1; step < 8; ++step) {
    Starving backend(model);
    backend.starving_step = step;
    BatchEngine engine(backend, *cache);
    EngineThread thread(engine);
    const auto start = [&] {
      StreamRequest request;
      request.prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9};
      SamplerSettings settings;
      settings.temperature = 1.0;
      settings.seed = 5;
      for (int i = 0; i < 3; ++i) request.samplers.emplace_back(settings, tiny.model().config().n_vocab);
      request.options.max_new_tokens = 40;
      request.options.stop_texts = {"never"};
      request.options.log_probabilities = 3;
      return AnswerStream(thread, tiny.tokenizer(), std::move(request));
    };
    AnswerStream starved = start();
    std::size_t n_failed = 0;
    while (const auto event = starved.next()) n_failed += event->kind == AnswerEvent::Kind::kEnd && event->failed ? 1 : 0;
    EXPECT_EQ(n_failed, 3u) << step;
    EXPECT_THROW(static_cast<void>(starved.take(1)), std::bad_alloc);
    thread.between_steps([](BatchEngine&) { no_memory = false; });
    AnswerStream fed = start();
    while (fed.next()) {
    }
    EXPECT_EQ(fed.take(2).tokens.size(), 40u) << step;
  }
}

}  // namespace
}  // namespace quench

#endif  // QUENCH_THREAD_SANITIZER
