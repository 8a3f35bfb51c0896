#pragma once

#include <cstddef>
#include <vector>

namespace quench::cli {

/// Repeated measurements of one thing.
class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }

  // Of at least one value.
  /// The middle one, or the mean of the two in the middle.
  [[nodiscard]] double median() const;
  [[nodiscard]] double min() const;
  [[nodiscard]] double max() const;
  [[nodiscard]] double mean() const;
  /// Of the population.
  [[nodiscard]] double standard_deviation() const;

 private:
  std::vector<double> values_;
};

}  // namespace quench::cli
