#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/token.h"
#include "sample/candidates.h"
#include "sample/dry.h"
#include "sample/logit_processor.h"
#include "sample/settings.h"
#include "sample/token_window.h"

namespace quench {

/// Picks tokens from logits. The same settings, seed, history and logits give the same tokens on every machine.
///
/// Work on a row: processors, logit bias, then the stages in the order of the settings, then the draw. Greedy settings apply
/// processors, bias, penalties and DRY, and take the first maximum; they never touch the random stream.
/// With mirostat 2 the truncating stages are left out, as in llama.cpp; penalties and DRY do apply.
///
/// Randomness: each committed token takes one 64-bit number from the stream, whatever the settings. Its upper 53 bits make the
/// uniform of the draw; XTC's coin is a hash of all 64. `sample` looks at the number, `commit` consumes it: a row may be sampled
/// again, and gives the same token, until one is committed.
class Sampler {
 public:
  /// Throws Error(kBadRequest) as `validate` does.
  Sampler(SamplerSettings settings, std::size_t vocab_size);
  Sampler(Sampler&&) noexcept = default;
  Sampler& operator=(Sampler&&) noexcept = default;

  /// A copy at the same point: stream, history, processors, mirostat's state.
  [[nodiscard]] Sampler clone() const;
  /// A copy with other settings and so a stream from its start; history and processors go with it. Throws as the constructor does.
  [[nodiscard]] Sampler with_settings(SamplerSettings settings) const;

  /// Processors run in the order they were added.
  void add_processor(std::unique_ptr<LogitProcessor> processor);
  /// Appends what a processor forces to come next, at most `most` tokens.
  void forced(std::size_t most, std::vector<Token>& tokens) const;

  /// Replaces the history that the penalties see (prompt and earlier turns). The random stream goes on where it was.
  void set_history(std::span<const Token> tokens) { window_.assign(tokens); }
  /// Room for a history of that many tokens, so that committing allocates nothing.
  void reserve_history(std::size_t tokens) { window_.reserve(tokens); }
  [[nodiscard]] std::span<const Token> history() const noexcept { return window_.history(); }

  /// The token for this row; `logits` [vocab] are not changed. Throws Error(kBadRequest) when processors, bias or penalties leave
  /// nothing to pick or the size is not the vocabulary's; Error(kBadFile) when the row itself holds no number, or +infinity.
  [[nodiscard]] Token sample(std::span<const float> logits);
  /// `token` is now part of the text: one step of the stream (none when greedy), history, processors.
  void commit(Token token);
  [[nodiscard]] Token next(std::span<const float> logits) {
    const Token token = sample(logits);
    commit(token);
    return token;
  }

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Where the random stream stands.
  [[nodiscard]] const std::array<std::uint64_t, 4>& random_state() const noexcept { return random_.state(); }
  [[nodiscard]] const SamplerSettings& settings() const noexcept { return settings_; }

 private:
  struct MirostatStep {
    Token token;
    double next_mu;
  };

  void prepare(std::span<const float> logits);
  void apply(SamplerStage stage, std::uint64_t bits);
  void apply_penalties();
  void apply_dry();
  void apply_temperature();
  [[nodiscard]] Token draw_mirostat(double u);

  SamplerSettings settings_;
  std::size_t vocab_size_;
  std::uint64_t seed_;
  Xoshiro256 random_;
  TokenWindow window_;
  Dry dry_;
  std::vector<std::unique_ptr<LogitProcessor>> processors_;
  double mu_;  ///< mirostat: the surprise allowed, in bits
  std::optional<MirostatStep> pending_;
  std::vector<float> row_;  ///< scratch: the row as processors and bias leave it
  CandidateSet candidates_;
};

}  // namespace quench
