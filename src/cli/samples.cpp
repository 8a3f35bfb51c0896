#include "cli/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quench::cli {

double Samples::median() const {
  std::vector<double> sorted = values_;
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double Samples::min() const { return std::ranges::min(values_); }

double Samples::max() const { return std::ranges::max(values_); }

double Samples::mean() const { return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size()); }

double Samples::standard_deviation() const {
  double squares = 0;
  for (const double value : values_) squares += (value - mean()) * (value - mean());
  return std::sqrt(squares / static_cast<double>(values_.size()));
}

}  // namespace quench::cli
