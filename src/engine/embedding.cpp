#include "engine/embedding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace quench {
namespace {

void normalize_length(std::vector<double>& sum, std::vector<float>& out) {
  double squares = 0.0;
  for (const double value : sum) squares += value * value;
  const double scale = squares > 0.0 ? 1.0 / std::sqrt(squares) : 0.0;
  for (const double value : sum) out.push_back(static_cast<float>(value * scale));
}

}  // namespace

std::vector<float> embed(Forward& forward, PrefixCache& prefix, std::span<const Token> tokens, Pooling pooling) {
  if (tokens.empty()) throw_bad_request("the text to embed is empty");
  KvSequence sequence = prefix.scratch_sequence(tokens.size(), forward.chunk());
  std::vector<double> sum(forward.model().config().n_embed, 0.0);
  forward.prefill_hidden(sequence, 0, tokens, [&](std::size_t row, std::span<const float> hidden) {
    const bool wanted = pooling == Pooling::kMean || row == (pooling == Pooling::kFirst ? 0 : tokens.size() - 1);
    if (!wanted) return;
    for (std::size_t i = 0; i < hidden.size(); ++i) sum[i] += hidden[i];
  });
  std::vector<float> embedding;
  normalize_length(sum, embedding);
  return embedding;
}

}  // namespace quench
