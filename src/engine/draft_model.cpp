#include "engine/draft_model.h"

#include <algorithm>

namespace quench {
namespace {

constexpr double kMostWeight = 32.0;
/// As for guesses without a model: a gain that a change of the machine's pace would eat is none.
constexpr double kLeastGain = 1.05;

}  // namespace

void HitRate::learn(bool hit) noexcept {
  weight_ = std::min(kMostWeight, weight_ + 1.0);
  rate_ += ((hit ? 1.0 : 0.0) - rate_) / weight_;
}

/// Takes back what was guessed wrong; all but the last token may stay.
void DraftModel::catch_up(const Wish& wish) {
  DraftSequence& sequence = *wish.sequence;
  const auto differs = std::ranges::mismatch(sequence.tokens, wish.tokens).in1;
  const std::size_t common = std::min(static_cast<std::size_t>(differs - sequence.tokens.begin()), wish.tokens.size() - 1);
  if (common == sequence.tokens.size()) return;
  // Behind a window there is no way back but from the start.
  const std::size_t kept = common >= sequence.kv.earliest_truncation() ? common : 0;
  sequence.kv.truncate(kept);
  sequence.tokens.resize(kept);
}

void DraftModel::step(std::span<Pending*> pending) {
  requests_.clear();
  StepShape shape;
  for (const Pending* one : pending) {
    DraftSequence& sequence = *one->wish.sequence;
    const std::span<const Token> rows =
        one->guessed > 0 ? std::span<const Token>(*one->wish.guesses).last(1) : one->wish.tokens.subspan(sequence.tokens.size(), one->rows);
    const bool last = one->guessed > 0 || sequence.tokens.size() + one->rows == one->wish.tokens.size();
    requests_.push_back({.sequence = &sequence.kv, .tokens = rows, .wanted = last ? Wanted::kLast : Wanted::kNone});
    shape += span_shape(sequence.tokens.size(), rows.size());
  }
  std::vector<Token> best(pending.size());
  const double start = backend_.now();
  backend_.step(requests_, [&](std::size_t request, std::size_t, std::span<const float> logits) {
    best[request] = static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
  });
  times_.observe(shape, backend_.now() - start);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    auto& tokens = pending[i]->wish.sequence->tokens;
    tokens.insert(tokens.end(), requests_[i].tokens.begin(), requests_[i].tokens.end());
    if (requests_[i].wanted != Wanted::kLast) continue;
    pending[i]->wish.guesses->push_back(best[i]);
    pending[i]->guessed += 1;
  }
}

void DraftModel::propose(std::span<const Wish> wishes) {
  pending_.clear();
  std::size_t rows = backend_.chunk();
  std::uint64_t promised = 0;
  for (const Wish& wish : wishes) {
    wish.guesses->clear();
    catch_up(wish);
    const std::size_t lacking = wish.tokens.size() - wish.sequence->tokens.size();
    const std::size_t now = std::min(lacking, rows);
    const std::uint64_t needed = wish.sequence->kv.bytes_needed(now + wish.most, backend_.chunk());
    if (now == 0 || wish.tokens.size() + wish.most > cache_.context() || promised + needed > cache_.free_bytes()) continue;
    promised += needed;
    rows -= now;
    pending_.push_back({.wish = wish, .rows = now, .guessed = 0});
  }
  in_step_.clear();
  for (Pending& one : pending_) in_step_.push_back(&one);
  while (!in_step_.empty()) {
    step(in_step_);
    std::erase_if(in_step_, [](const Pending* one) { return one->guessed == 0 || one->guessed >= one->wish.most; });
  }
}

double DraftModel::guess_seconds(double answers) const noexcept {
  return times_.predict({.rows = static_cast<std::size_t>(answers), .attended = 0.0}) / answers;
}

std::size_t worthwhile_guesses(double rate, double guess_seconds, const StepTimes& times, const StepShape& shape, double answers,
                               std::size_t length, std::size_t most) noexcept {
  const double plain = times.predict(shape);
  if (!(plain > 0.0)) return 0;
  std::size_t best = 0;
  double best_rate = kLeastGain * answers / plain;
  double tokens = answers;
  double likely = 1.0;
  for (std::size_t k = 1; k <= most; ++k) {
    likely *= rate;
    tokens += likely;
    StepShape longer = shape;
    longer += span_shape(length + 1, k);
    const double pace = tokens / (times.predict(longer) + static_cast<double>(k) * guess_seconds);
    if (pace <= best_rate) continue;
    best = k;
    best_rate = pace;
  }
  return best;
}

}  // namespace quench
