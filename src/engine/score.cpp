#include "engine/score.h"

#include "base/error.h"

namespace quench {

std::vector<TokenLogProbabilities> score(Forward& forward, PrefixCache& prefix, std::span<const Token> tokens, std::size_t n_top) {
  if (tokens.empty()) throw_bad_request("there are no tokens to score");
  KvSequence sequence = prefix.scratch_sequence(tokens.size(), forward.chunk());
  std::vector<TokenLogProbabilities> scores;
  scores.reserve(tokens.size() - 1);
  // After the last token nothing is asked, but its row is checked as every other is.
  forward.prefill_all(sequence, 0, tokens, [&](std::size_t row, std::span<const float> logits) {
    if (row + 1 < tokens.size()) scores.push_back(log_probabilities(logits, tokens[row + 1], n_top));
  });
  return scores;
}

}  // namespace quench
