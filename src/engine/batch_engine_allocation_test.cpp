// Counts every allocation of this program: the engine's promise that running answers cost none.
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

#include "engine/batch_engine.h"
#include "engine/recorded_answers.h"
#include "engine/simulated_backend.h"

namespace {

std::atomic<std::size_t> n_allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
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

}  // namespace
}  // namespace quench

#endif  // QUENCH_THREAD_SANITIZER
