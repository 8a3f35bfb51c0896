#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/token.h"

namespace quench {

struct Candidate {
  float logit;
  Token token;
};

/// The order of candidates: larger logits first, equal ones by id.
[[nodiscard]] constexpr bool ranks_before(const Candidate& a, const Candidate& b) noexcept {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/// The tokens that may still be drawn, narrowed step by step.
///
/// It starts as the whole row and stays a view of it, with a floor below which nothing counts, until a step cuts it to a ranked list.
/// No step sorts the vocabulary: the best k are selected in one pass. Temperature is one factor kept beside the logits, for it
/// changes no ranking. Every sum runs in one fixed order, in double.
/// NaN and -infinity are never candidates.
class CandidateSet {
 public:
  /// All of `row` [vocab], which must outlive the use of this set. False when nothing in it can be drawn. Throws Error(kBadFile) when
  /// an entry is +infinity.
  [[nodiscard]] bool reset(std::span<const float> row);

  /// Replaces the logit of each candidate that `values` names by change(logit, value). `change` sees the logit divided by the
  /// temperatures so far. Throws Error(kBadRequest) when no candidate is left.
  template <typename Value, typename Change>
  void edit(const std::unordered_map<Token, Value>& values, const Change& change);

  void divide_by(double temperature) noexcept { scale_ /= temperature; }

  /// The k best; k > 0.
  void keep_top(std::size_t k);
  /// Logits within n standard deviations (of the candidates' logits) of the best.
  void keep_sigma(double n);
  /// Probability at least p times the best one's.
  void keep_relative(double p, std::size_t min_keep);
  /// The shortest run from the best down whose probabilities reach p. Source: Holtzman et al. 2019.
  void keep_nucleus(double p, std::size_t min_keep);
  /// Those whose surprise is nearest to the entropy, until their probabilities exceed p. Source: Meister et al. 2022.
  void keep_typical(double p, std::size_t min_keep);
  /// Surprise at most `bits`; the best one always stays.
  void keep_surprise(double bits);
  /// Drops all with probability >= threshold except the least probable of them (XTC).
  void drop_top_choices(double threshold, std::size_t min_keep);

  [[nodiscard]] std::size_t count() const noexcept;
  [[nodiscard]] double entropy() const;  ///< nats
  [[nodiscard]] Token best() const noexcept { return best_.token; }

  struct Drawn {
    Token token;
    double probability;
  };
  /// Inverse transform: the first candidate at which the running sum exceeds u times the whole; u in [0, 1). A list is walked from
  /// the best down, the whole row by id.
  [[nodiscard]] Drawn draw(double u);

  /// Best first; ranks the whole row if nothing has cut it yet.
  [[nodiscard]] std::span<const Candidate> ranked();

 private:
  [[nodiscard]] double weight(float logit) const noexcept;
  template <typename Term>
  [[nodiscard]] double sum_of(const Term& term) const;
  [[nodiscard]] double total_weight() const;
  [[nodiscard]] Drawn draw_from_row(double target, double total) const;
  void select(std::size_t k);
  void set_floor(double logit) noexcept;
  /// False when no candidate is left.
  [[nodiscard]] bool refresh_best();
  void refresh_edited();
  void own_row();

  std::span<const float> row_;
  std::vector<float> copy_;      ///< the row once a step changes it
  std::vector<Candidate> list_;  ///< ranked, once cut
  mutable std::vector<double> block_sums_;
  bool whole_ = true;
  float floor_ = std::numeric_limits<float>::lowest();
  Candidate best_{};
  double scale_ = 1.0;
};

template <typename Value, typename Change>
void CandidateSet::edit(const std::unordered_map<Token, Value>& values, const Change& change) {
  if (values.empty()) return;
  const auto changed = [&](float logit, const Value& value) { return static_cast<float>(change(logit * scale_, value) / scale_); };
  if (whole_) {
    own_row();
    for (const auto& [token, value] : values) {
      if (token < copy_.size() && copy_[token] >= floor_) copy_[token] = changed(copy_[token], value);
    }
  } else {
    for (auto& candidate : list_) {
      if (const auto found = values.find(candidate.token); found != values.end()) candidate.logit = changed(candidate.logit, found->second);
    }
  }
  refresh_edited();
}

}  // namespace quench
