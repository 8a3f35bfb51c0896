#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/token.h"
#include "engine/step_backend.h"
#include "engine/step_times.h"
#include "model/kv_cache.h"
#include "model/kv_sequence.h"

namespace quench {

/// How often a source's guesses came true: an average over the last ones.
class HitRate {
 public:
  [[nodiscard]] double value() const noexcept { return rate_; }
  void learn(bool hit) noexcept;

 private:
  double rate_ = 0.5;
  double weight_ = 2.0;  ///< how many guesses the rate stands for
};

/// What a draft model has computed of one answer.
struct DraftSequence {
  explicit DraftSequence(KvCache& cache) : kv(cache) {}

  KvSequence kv;
  std::vector<Token> tokens;  ///< of the positions in kv
  HitRate hits;
  std::size_t since_guess = 0;  ///< committed tokens since it guessed last
};

/// A second, smaller model of the same vocabulary, which guesses what the first will say. One thread at a time.
class DraftModel {
 public:
  /// Both outlive this. The cache is the draft model's own.
  DraftModel(StepBackend& backend, KvCache& cache) : backend_(backend), cache_(cache) {}

  /// What one answer asks for.
  struct Wish {
    DraftSequence* sequence = nullptr;
    std::span<const Token> tokens;          ///< prompt and committed ones; not empty
    std::size_t most = 0;                   ///< guesses
    std::vector<Token>* guesses = nullptr;  ///< where they go, in place of what is there
  };

  [[nodiscard]] DraftSequence new_sequence() const { return DraftSequence(cache_); }
  /// Guesses for all at once: the most probable tokens, one after the other. Where the model lags far behind (a new prompt), or its cache
  /// is full, it guesses nothing; a call computes at most a chunk of what it lacks. Throws what the model throws.
  void propose(std::span<const Wish> wishes);

  /// Seconds that a guess takes for each of `answers`.
  [[nodiscard]] double guess_seconds(double answers) const noexcept;
  [[nodiscard]] std::size_t vocab_size() const noexcept { return backend_.vocab_size(); }

 private:
  struct Pending {
    Wish wish;
    std::size_t rows = 0;
    std::size_t guessed = 0;
  };
  void catch_up(const Wish& wish);
  void step(std::span<Pending*> pending);

  StepBackend& backend_;
  KvCache& cache_;
  StepTimes times_;
  std::vector<Pending> pending_;
  std::vector<Pending*> in_step_;
  std::vector<SequenceTokens> requests_;
};

/// How many guesses of a draft model are worth their time and that of their rows: `rate` of them come true. A step of `shape` gives
/// `answers` tokens without them. At most `most`.
[[nodiscard]] std::size_t worthwhile_guesses(double rate, double guess_seconds, const StepTimes& times, const StepShape& shape,
                                             double answers, std::size_t length, std::size_t most) noexcept;

}  // namespace quench
