#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/token.h"
#include "engine/step_times.h"
#include "engine/suffix_automaton.h"

namespace quench {

/// A text that answers may copy from, shared by all requests that name it.
using ReferenceText = std::shared_ptr<const SuffixAutomaton>;

/// The token that followed each token last, over all conversations of an engine: the poorest guess, for 4 bytes a token of the vocabulary.
class SuccessorTable {
 public:
  explicit SuccessorTable(std::size_t vocab_size) : next_(vocab_size, kNone) {}
  void learn(Token token, Token next) noexcept { next_[token] = next; }
  [[nodiscard]] bool knows(Token token) const noexcept { return next_[token] != kNone; }
  [[nodiscard]] Token next(Token token) const noexcept { return next_[token]; }

 private:
  static constexpr Token kNone = 0xFFFFFFFFu;
  std::vector<Token> next_;
};

/// How often guesses came true, by where they came from and how long the match was. Learned from every committed token, drafted or not, so
/// that a source which has gone quiet is heard again as soon as it is right.
class DraftRecord {
 public:
  /// Of a guess after a match of `match_length` tokens; 0 is the successor table.
  [[nodiscard]] double rate(std::size_t match_length) const noexcept { return rates_[bucket(match_length)]; }
  void learn(std::size_t match_length, bool hit) noexcept;
  /// The same rates, held less firmly: what a new answer starts from learns fast.
  [[nodiscard]] DraftRecord loosened() const noexcept;

 private:
  static constexpr std::size_t kBuckets = 7;  ///< 0, 1, 2, 3-4, 5-8, 9-16, more
  [[nodiscard]] static std::size_t bucket(std::size_t match_length) noexcept;

  std::array<double, kBuckets> rates_{0.05, 0.1, 0.3, 0.5, 0.6, 0.8, 0.9};
  std::array<double, kBuckets> weights_{};  ///< how many tokens each rate stands for
};

/// What is likely to follow.
struct Draft {
  std::size_t match_length = 0;
  std::span<const Token> tokens;  ///< valid until the next call of the drafter
};

/// Guesses the next tokens of one sequence without a model: what followed the longest earlier occurrence of its end, in the sequence itself
/// or in the reference texts (ties: the sequence, then the first text); without any, the chain of the successor table.
class Drafter {
 public:
  /// tokens  how many there may be: room for up to 32,768 is taken at once; the table outlives the drafter
  Drafter(SuccessorTable& successors, std::vector<ReferenceText> references, const DraftRecord& record, std::size_t tokens);

  /// Text that was not generated here: nothing is learned about guesses.
  void read(std::span<const Token> tokens);
  /// A committed token of the answer.
  void commit(Token token);

  /// At most `most` tokens.
  [[nodiscard]] Draft propose(std::size_t most);
  [[nodiscard]] const DraftRecord& record() const noexcept { return record_; }

 private:
  struct Reference {
    ReferenceText text;
    SuffixAutomaton::Cursor cursor;
  };

  void append(Token token);
  [[nodiscard]] SuffixMatch best_match(std::span<const Token>& text) const;

  SuccessorTable& successors_;
  std::vector<Reference> references_;
  SuffixAutomaton own_;
  DraftRecord record_;
  std::vector<Token> chain_;
};

/// How many of a draft's tokens are worth a step's time. A step of `shape` gives `answers` tokens without them; each drafted one adds a
/// row, at `length` positions, and gives a token when it and all before it come true. The number with the most tokens a second, 0 when none
/// beats the step as it is.
[[nodiscard]] std::size_t worthwhile_draft(const Draft& draft, const DraftRecord& record, const StepTimes& times, const StepShape& shape,
                                           double answers, std::size_t length) noexcept;

}  // namespace quench
