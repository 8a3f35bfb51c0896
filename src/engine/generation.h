#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token.h"
#include "engine/batch_engine.h"
#include "engine/generation_options.h"
#include "sample/sampler.h"
#include "text/tokenizer.h"

namespace quench {

/// Called on the generating thread; each may be empty. An exception from a callback ends the generation as an error does.
struct GenerationHooks {
  std::function<void(std::string_view text)> on_text{};  ///< never ends inside a UTF-8 sequence, never holds part of a stop
  std::function<void(Token token)> on_token{};           ///< each committed token, before its text
  std::function<void(std::size_t done, std::size_t total)> on_prefill{};  ///< tokens of the prompt, cached ones included
  const std::atomic<bool>* cancel = nullptr;                              ///< looked at between steps
};

/// An answer in the making on a BatchEngine, as text. Shared with the engine; dropping it lets the engine finish the answer in silence.
class Generation {
 public:
  Generation(Generation&&) noexcept = default;
  Generation& operator=(Generation&&) noexcept = default;
  ~Generation();

  [[nodiscard]] RequestId id() const noexcept { return id_; }
  [[nodiscard]] bool done() const noexcept;
  /// Once, when done: the result, or what made the answer fail is thrown.
  [[nodiscard]] GenerationResult take();
  /// Once, when done: the sampler as the answer left it.
  [[nodiscard]] Sampler take_sampler();

 private:
  friend Generation start_generation(BatchEngine&, const Tokenizer&, Sampler, std::vector<Token>, const GenerationOptions&,
                                     GenerationHooks);
  struct State;
  class Listener;
  explicit Generation(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
  RequestId id_ = 0;
};

/// Submits the request; whoever runs the engine brings it forward. The tokenizer outlives the answer. hooks.cancel is not looked at: cancel
/// by id. Throws as `generate` does of a request that cannot be computed.
[[nodiscard]] Generation start_generation(BatchEngine& engine, const Tokenizer& tokenizer, Sampler sampler, std::vector<Token> prompt,
                                          const GenerationOptions& options, GenerationHooks hooks = {});

/// Continues `prompt` on an engine that nobody else runs: steps it until the answer is complete. What the engine's prefix cache holds of
/// the prompt is not computed again. The sampler's history becomes prompt and answer.
///
/// Throws Error(kBadRequest) for an empty prompt, max_new_tokens of 0, a token outside the model's vocabulary, or a prompt that leaves no
/// room in the context (with both numbers); whatever model, sampler and hooks throw. A sampler whose request was refused is lost: clone it
/// before, where it matters.
[[nodiscard]] GenerationResult generate(BatchEngine& engine, const Tokenizer& tokenizer, Sampler& sampler, std::span<const Token> prompt,
                                        const GenerationOptions& options, const GenerationHooks& hooks = {});

}  // namespace quench
