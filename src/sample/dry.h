#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "base/token.h"
#include "sample/settings.h"

namespace quench {

/// The DRY penalty ("don't repeat yourself") of each token that would prolong a repetition: for a token that followed an earlier copy
/// of the last n tokens, n >= allowed_length, it is multiplier * base^(n - allowed_length), for the longest such n. A repetition is
/// not followed across a breaker, and a breaker of one token is never penalised.
///
/// Source: p-e-w, text-generation-webui pull request 5677; matching by the Z-algorithm (Gusfield 1997, section 1.4).
class Dry {
 public:
  explicit Dry(const SamplerSettings& settings);

  [[nodiscard]] bool active() const noexcept { return multiplier_ != 0.0 && window_ != 0; }
  /// Linear in the number of tokens looked at.
  [[nodiscard]] std::unordered_map<Token, double> penalties(std::span<const Token> history) const;

 private:
  [[nodiscard]] std::size_t reach(std::span<const Token> recent) const;
  [[nodiscard]] double penalty(std::size_t excess) const;

  double multiplier_;
  double base_;
  std::size_t allowed_;
  int window_;
  std::unordered_map<Token, std::vector<std::vector<Token>>> tails_;  ///< breakers by their first token: the rest of each
};

}  // namespace quench
