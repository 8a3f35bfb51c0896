#include "engine/drafter.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace quench {
namespace {

/// Shorter matches say less than the table.
constexpr std::size_t kLeastMatch = 2;
/// Of a guess in the chain of the successor table.
constexpr std::size_t kLongestChain = 4;
/// Contexts can be far longer than what is ever said in them.
constexpr std::size_t kMostReserved = std::size_t{1} << 15;
/// A rate stands for as many of the last tokens, and starts as the mean of a few.
constexpr double kMostWeight = 48.0;
constexpr double kFirstWeight = 6.0;
/// A gain that a change of the machine's pace would eat is none.
constexpr double kLeastGain = 1.05;

}  // namespace

std::size_t DraftRecord::bucket(std::size_t match_length) noexcept {
  if (match_length <= 2) return match_length;
  return std::min<std::size_t>(kBuckets - 1, static_cast<std::size_t>(std::bit_width(match_length - 1)) + 1);
}

void DraftRecord::learn(std::size_t match_length, bool hit) noexcept {
  const std::size_t index = bucket(match_length);
  weights_[index] = std::min(kMostWeight, std::max(kFirstWeight, weights_[index]) + 1.0);
  rates_[index] += ((hit ? 1.0 : 0.0) - rates_[index]) / weights_[index];
}

DraftRecord DraftRecord::loosened() const noexcept {
  DraftRecord record;
  record.rates_ = rates_;
  return record;
}

Drafter::Drafter(SuccessorTable& successors, std::vector<ReferenceText> references, const DraftRecord& record, std::size_t tokens)
    : successors_(successors), own_(std::min(tokens, kMostReserved)), record_(record) {
  for (auto& text : references) references_.push_back({.text = std::move(text), .cursor = {}});
  chain_.reserve(kLongestChain);
}

void Drafter::append(Token token) {
  if (!own_.tokens().empty()) successors_.learn(own_.tokens().back(), token);
  own_.append(token);
  for (Reference& reference : references_) reference.text->advance(reference.cursor, token);
}

void Drafter::read(std::span<const Token> tokens) {
  for (const Token token : tokens) append(token);
}

void Drafter::commit(Token token) {
  const Draft draft = propose(1);
  if (!draft.tokens.empty()) record_.learn(draft.match_length, draft.tokens[0] == token);
  append(token);
}

SuffixMatch Drafter::best_match(std::span<const Token>& text) const {
  SuffixMatch best = own_.repeated_suffix();
  text = own_.tokens();
  for (const Reference& reference : references_) {
    const SuffixMatch match = reference.text->match(reference.cursor);
    if (match.length <= best.length || match.next >= reference.text->tokens().size()) continue;
    best = match;
    text = reference.text->tokens();
  }
  return best;
}

Draft Drafter::propose(std::size_t most) {
  std::span<const Token> text;
  const SuffixMatch match = best_match(text);
  if (match.length >= kLeastMatch) {
    return {.match_length = match.length, .tokens = text.subspan(match.next, std::min(most, text.size() - match.next))};
  }
  chain_.clear();
  if (own_.tokens().empty()) return {};
  for (Token token = own_.tokens().back(); chain_.size() < std::min(most, kLongestChain) && successors_.knows(token);) {
    token = successors_.next(token);
    chain_.push_back(token);
  }
  return {.match_length = 0, .tokens = chain_};
}

std::size_t worthwhile_draft(const Draft& draft, const DraftRecord& record, const StepTimes& times, const StepShape& shape, double answers,
                             std::size_t length) noexcept {
  const double plain = times.predict(shape);
  if (!(plain > 0.0)) return 0;
  std::size_t best = 0;
  double best_rate = kLeastGain * answers / plain;
  double tokens = answers;
  double likely = 1.0;
  for (std::size_t k = 1; k <= draft.tokens.size(); ++k) {
    // A guess that came true has made the match longer; in the chain of the table it has not.
    likely *= record.rate(draft.match_length == 0 ? 0 : draft.match_length + k - 1);
    tokens += likely;
    StepShape longer = shape;
    longer += span_shape(length + 1, k);
    const double rate = tokens / times.predict(longer);
    if (rate <= best_rate) continue;
    best = k;
    best_rate = rate;
  }
  return best;
}

}  // namespace quench
