#pragma once

#include <cstddef>
#include <span>

#include "engine/batch_engine.h"
#include "engine/engine_thread.h"
#include "engine/generation.h"
#include "sample/sampler.h"
#include "text/tokenizer.h"

namespace quench {

/// Makes answers one at a time, whoever runs the engine.
class Generator {
 public:
  Generator() = default;
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  virtual ~Generator() = default;

  /// As the function `generate`; hooks are called on this thread.
  [[nodiscard]] virtual GenerationResult generate(const Tokenizer& tokenizer, Sampler& sampler, std::span<const Token> prompt,
                                                  const GenerationOptions& options, const GenerationHooks& hooks) = 0;
  [[nodiscard]] virtual std::size_t context() const noexcept = 0;
  [[nodiscard]] virtual std::size_t vocab_size() const noexcept = 0;
};

/// On an engine that nobody else runs: this thread does.
class LocalGenerator final : public Generator {
 public:
  /// `engine` outlives this.
  explicit LocalGenerator(BatchEngine& engine) : engine_(engine) {}

  [[nodiscard]] GenerationResult generate(const Tokenizer& tokenizer, Sampler& sampler, std::span<const Token> prompt,
                                          const GenerationOptions& options, const GenerationHooks& hooks) override {
    return quench::generate(engine_, tokenizer, sampler, prompt, options, hooks);
  }
  [[nodiscard]] std::size_t context() const noexcept override { return engine_.context(); }
  [[nodiscard]] std::size_t vocab_size() const noexcept override { return engine_.vocab_size(); }

 private:
  BatchEngine& engine_;
};

/// On an engine with a thread of its own, beside the answers of others.
class SharedGenerator final : public Generator {
 public:
  /// `engine` outlives this.
  explicit SharedGenerator(EngineThread& engine) : engine_(engine) {}

  [[nodiscard]] GenerationResult generate(const Tokenizer& tokenizer, Sampler& sampler, std::span<const Token> prompt,
                                          const GenerationOptions& options, const GenerationHooks& hooks) override;
  [[nodiscard]] std::size_t context() const noexcept override { return engine_.context(); }
  [[nodiscard]] std::size_t vocab_size() const noexcept override { return engine_.vocab_size(); }

 private:
  EngineThread& engine_;
};

}  // namespace quench
