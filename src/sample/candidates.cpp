#include "sample/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "sample/exact_math.h"

namespace quench {
namespace {

// Sums over the row: eight strided partial sums per block, folded pairwise, and the blocks added in order. Eight lanes are four vector
// registers, enough independent chains to cover an addition's latency of 4; 1,024 entries a block keep a draw's second look to 4 KiB.
constexpr std::size_t kLanes = 8;
constexpr std::size_t kBlock = 1024;
constexpr std::size_t kPairs = kLanes / 2;

/// Sum of term(logits) over at most kBlock entries that are at least `floor`; term takes and gives a DoublePair.
template <typename Term>
double block_sum(std::span<const float> block, float floor, const Term& term) {
  std::array<DoublePair, kPairs> lanes{};
  const auto add = [&](const float* values) {
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      const DoublePair value{static_cast<double>(values[2 * pair]), static_cast<double>(values[2 * pair + 1])};
      const DoublePair result = term(value);
      lanes[pair] += value >= static_cast<double>(floor) ? result : DoublePair{};
    }
  };
  std::size_t i = 0;
  for (; i + kLanes <= block.size(); i += kLanes) add(block.data() + i);
  if (i < block.size()) {
    std::array<float, kLanes> tail;
    tail.fill(-std::numeric_limits<float>::infinity());
    std::ranges::copy(block.subspan(i), tail.begin());
    add(tail.data());
  }
  const DoublePair folded = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  return folded[0] + folded[1];
}

template <typename Term>
double row_sum(std::span<const float> row, float floor, const Term& term) {
  double sum = 0.0;
  for (std::size_t at = 0; at < row.size(); at += kBlock) {
    sum += block_sum(row.subspan(at, std::min(kBlock, row.size() - at)), floor, term);
  }
  return sum;
}

// The scan for the best skips 64 entries, 16 vector registers, by one comparison.
constexpr std::size_t kScan = 64;

/// Whether any of kScan values is above the bar. NaN is not.
bool any_above(const float* values, float bar) {
  using Quad = float __attribute__((vector_size(16)));
  using Mask = std::int32_t __attribute__((vector_size(16)));
  Mask above{};
  for (std::size_t i = 0; i < kScan; i += 4) {
    Quad quad;
    std::memcpy(&quad, values + i, sizeof(quad));
    above |= quad > bar;
  }
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(above);
  return (halves[0] | halves[1]) != 0;
}

/// Calls visit(logit, token) for each entry above `bar`, in order of ids; visit may raise the bar.
template <typename Visit>
void scan_above(std::span<const float> row, float& bar, const Visit& visit) {
  std::size_t i = 0;
  for (; i + kScan <= row.size(); i += kScan) {
    if (!any_above(row.data() + i, bar)) continue;
    for (std::size_t j = i; j < i + kScan; ++j) {
      if (row[j] > bar) visit(row[j], static_cast<Token>(j));
    }
  }
  for (; i < row.size(); ++i) {
    if (row[i] > bar) visit(row[i], static_cast<Token>(i));
  }
}

}  // namespace

bool CandidateSet::reset(std::span<const float> row) {
  row_ = row;
  whole_ = true;
  floor_ = std::numeric_limits<float>::lowest();
  scale_ = 1.0;
  list_.clear();
  return refresh_best();
}

bool CandidateSet::refresh_best() {
  if (!whole_) {
    std::erase_if(list_, [](const Candidate& candidate) { return !(candidate.logit >= std::numeric_limits<float>::lowest()); });
    std::ranges::sort(list_, ranks_before);
    if (list_.empty()) return false;
    best_ = list_.front();
    return true;
  }
  float bar = -std::numeric_limits<float>::infinity();
  bool found = false;
  scan_above(row_, bar, [&](float logit, Token token) {
    best_ = {logit, token};
    bar = logit;
    found = true;
  });
  if (found && best_.logit == std::numeric_limits<float>::infinity()) {
    throw_bad_file(fmt::format("the logit of token {} is infinite: the weights are damaged or out of range", best_.token));
  }
  return found;
}

void CandidateSet::refresh_edited() {
  if (!refresh_best()) throw_bad_request("the penalties leave no token to pick: lower them");
}

void CandidateSet::own_row() {
  if (!copy_.empty() && row_.data() == copy_.data()) return;
  copy_.assign(row_.begin(), row_.end());
  row_ = copy_;
}

double CandidateSet::weight(float logit) const noexcept {
  return exact_exp((static_cast<double>(logit) - static_cast<double>(best_.logit)) * scale_);
}

double CandidateSet::total_weight() const {
  if (!whole_) {
    double sum = 0.0;
    for (const auto& candidate : list_) sum += weight(candidate.logit);
    return sum;
  }
  const double best = static_cast<double>(best_.logit);
  const double scale = scale_;
  block_sums_.clear();
  double total = 0.0;
  for (std::size_t at = 0; at < row_.size(); at += kBlock) {
    const auto block = row_.subspan(at, std::min(kBlock, row_.size() - at));
    block_sums_.push_back(block_sum(block, floor_, [=](DoublePair logits) { return exact_exp((logits - best) * scale); }));
    total += block_sums_.back();
  }
  return total;
}

/// Sum of term(logit) over the candidates; term takes and gives a DoublePair.
template <typename Term>
double CandidateSet::sum_of(const Term& term) const {
  if (whole_) return row_sum(row_, floor_, term);
  double sum = 0.0;
  for (const auto& candidate : list_) {
    const auto logit = static_cast<double>(candidate.logit);
    sum += term(DoublePair{logit, logit})[0];
  }
  return sum;
}

std::size_t CandidateSet::count() const noexcept {
  if (!whole_) return list_.size();
  return static_cast<std::size_t>(std::ranges::count_if(row_, [this](float logit) { return logit >= floor_; }));
}

/// Fills list_ with the k best of the row, ranked, without leaving the whole-row state. A buffer of about two k takes what beats the bar;
/// when it is full, the k best of it stay and the worst of these is the new bar. A later entry equal to the bar has a higher id and
/// loses, so "above" is exact.
void CandidateSet::select(std::size_t k) {
  k = std::min(k, row_.size());
  const std::size_t capacity = k + std::max<std::size_t>(k, 64);
  list_.clear();
  float bar = std::nextafter(floor_, -std::numeric_limits<float>::infinity());
  const auto cut = [&] {
    if (list_.size() <= k) return;
    std::ranges::nth_element(list_, list_.begin() + static_cast<std::ptrdiff_t>(k) - 1, ranks_before);
    list_.resize(k);
    bar = list_.back().logit;
  };
  scan_above(row_, bar, [&](float logit, Token token) {
    list_.push_back({logit, token});
    if (list_.size() >= capacity) cut();
  });
  cut();
  std::ranges::sort(list_, ranks_before);
}

/// Raises the floor to the smallest float that is at least `logit`.
void CandidateSet::set_floor(double logit) noexcept {
  float rounded = static_cast<float>(std::max(logit, static_cast<double>(std::numeric_limits<float>::lowest())));
  if (static_cast<double>(rounded) < logit) rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
  floor_ = std::max(floor_, std::min(rounded, best_.logit));
}

void CandidateSet::keep_top(std::size_t k) {
  if (whole_) {
    select(k);
    whole_ = false;
  } else if (list_.size() > k) {
    list_.resize(k);
  }
}

void CandidateSet::keep_sigma(double n) {
  const auto live = static_cast<double>(count());
  const double mean = sum_of([](DoublePair logits) { return logits; }) / live;
  const double variance = sum_of([=](DoublePair logits) { return (logits - mean) * (logits - mean); }) / live;
  const double lowest = static_cast<double>(best_.logit) - n * std::sqrt(variance);
  if (whole_) {
    set_floor(lowest);
  } else {
    std::erase_if(list_, [&](const Candidate& candidate) { return static_cast<double>(candidate.logit) < lowest; });
  }
}

void CandidateSet::keep_relative(double p, std::size_t min_keep) {
  const double lowest = static_cast<double>(best_.logit) + exact_log(p) / scale_;
  if (whole_) {
    const float before = floor_;
    set_floor(lowest);
    if (min_keep <= 1 || count() >= min_keep) return;
    floor_ = before;
    keep_top(min_keep);
    return;
  }
  std::size_t kept = std::min(std::max<std::size_t>(min_keep, 1), list_.size());
  while (kept < list_.size() && static_cast<double>(list_[kept].logit) >= lowest) ++kept;
  list_.resize(kept);
}

void CandidateSet::keep_nucleus(double p, std::size_t min_keep) {
  const double wanted = p * total_weight();
  // Most nuclei fit the first look; each further one takes four times as many.
  for (std::size_t k = std::max<std::size_t>(256, min_keep);; k *= 4) {
    if (whole_) select(k);
    double sum = 0.0;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      sum += weight(list_[i].logit);
      if (sum < wanted || i + 1 < min_keep) continue;
      list_.resize(i + 1);
      whole_ = false;
      return;
    }
    if (!whole_ || list_.size() < k) break;  // all of them are needed
  }
  whole_ = false;
}

void CandidateSet::keep_typical(double p, std::size_t min_keep) {
  struct Scored {
    double distance;
    Candidate candidate;
  };
  const double total = total_weight();
  const double log_total = exact_log(total);
  const double spread = entropy();
  std::vector<Scored> scored;
  const auto score = [&](float logit, Token token) {
    const double surprise = log_total - (static_cast<double>(logit) - static_cast<double>(best_.logit)) * scale_;
    scored.push_back({std::abs(surprise - spread), {logit, token}});
  };
  if (whole_) {
    float bar = std::nextafter(floor_, -std::numeric_limits<float>::infinity());
    scan_above(row_, bar, score);
  } else {
    for (const auto& candidate : list_) score(candidate.logit, candidate.token);
  }
  const auto nearer = [](const Scored& a, const Scored& b) {
    return a.distance < b.distance || (a.distance == b.distance && ranks_before(a.candidate, b.candidate));
  };
  list_.clear();
  double sum = 0.0;
  std::size_t sorted = 0;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    if (i == sorted) {
      const std::size_t step = std::min(std::max<std::size_t>(256, 3 * sorted), scored.size() - sorted);
      const auto from = scored.begin() + static_cast<std::ptrdiff_t>(sorted);
      const auto to = from + static_cast<std::ptrdiff_t>(step);
      if (to != scored.end()) std::ranges::nth_element(from, to, scored.end(), nearer);
      std::ranges::sort(from, to, nearer);
      sorted += step;
    }
    list_.push_back(scored[i].candidate);
    sum += weight(scored[i].candidate.logit);
    if (sum > p * total && i + 1 >= min_keep) break;
  }
  whole_ = false;
  std::ranges::sort(list_, ranks_before);
  best_ = list_.front();
}

void CandidateSet::keep_surprise(double bits) {
  // -log2 p <= bits, with p = e^((logit - best) scale) / total.
  constexpr double kLn2 = 0.69314718055994530942;
  const double lowest = static_cast<double>(best_.logit) + (exact_log(total_weight()) - bits * kLn2) / scale_;
  if (whole_) {
    set_floor(lowest);
    return;
  }
  std::size_t kept = std::min<std::size_t>(1, list_.size());
  while (kept < list_.size() && static_cast<double>(list_[kept].logit) >= lowest) ++kept;
  list_.resize(kept);
}

void CandidateSet::drop_top_choices(double threshold, std::size_t min_keep) {
  const double wanted = threshold * total_weight();
  std::size_t above = 0;
  for (std::size_t k = 64;; k *= 4) {
    if (whole_) select(k);
    above = 0;
    while (above < list_.size() && weight(list_[above].logit) >= wanted) ++above;
    if (!whole_ || above < list_.size() || list_.size() < k) break;
  }
  if (above < 2 || count() - (above - 1) < std::max<std::size_t>(min_keep, 1)) return;
  const auto dropped = list_.begin() + static_cast<std::ptrdiff_t>(above) - 1;
  if (whole_) {
    own_row();
    for (auto each = list_.begin(); each != dropped; ++each) copy_[each->token] = -std::numeric_limits<float>::infinity();
    best_ = *dropped;
  } else {
    list_.erase(list_.begin(), dropped);
    best_ = list_.front();
  }
}

double CandidateSet::entropy() const {
  const double best = static_cast<double>(best_.logit);
  const double scale = scale_;
  const double total = total_weight();
  // -sum p ln p = ln total - (sum w x) / total, with w = e^x.
  const double sum = sum_of([=](DoublePair logits) {
    const DoublePair x = (logits - best) * scale;
    return exact_exp(x) * x;
  });
  return exact_log(total) - sum / total;
}

CandidateSet::Drawn CandidateSet::draw(double u) {
  const double total = total_weight();
  const double target = u * total;
  if (whole_) return draw_from_row(target, total);
  double sum = 0.0;
  for (const auto& candidate : list_) {
    sum += weight(candidate.logit);
    if (sum > target) return {candidate.token, weight(candidate.logit) / total};
  }
  // Rounding left the sum a little short of the target.
  return {list_.back().token, weight(list_.back().logit) / total};
}

CandidateSet::Drawn CandidateSet::draw_from_row(double target, double total) const {
  double before = 0.0;
  for (std::size_t block = 0; block < block_sums_.size(); ++block) {
    if (before + block_sums_[block] > target) {
      double sum = before;
      const std::size_t end = std::min(row_.size(), (block + 1) * kBlock);
      for (std::size_t i = block * kBlock; i < end; ++i) {
        if (!(row_[i] >= floor_)) continue;
        sum += weight(row_[i]);
        if (sum > target) return {static_cast<Token>(i), weight(row_[i]) / total};
      }
      target = sum;  // Added one by one, the block fell a rounding short: the next candidate takes it.
    }
    before += block_sums_[block];
  }
  return {best_.token, 1.0 / total};
}

std::span<const Candidate> CandidateSet::ranked() {
  if (whole_) keep_top(row_.size());
  return list_;
}

}  // namespace quench
