#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace quench {

/// What decides how long a step takes.
struct StepShape {
  std::size_t rows = 0;  ///< tokens in the step
  /// Of all rows, the positions that each attends to: rows x (positions before + half of the rows).
  double attended = 0.0;

  StepShape& operator+=(const StepShape& other) noexcept;
};

/// `n` rows after `pos0` positions of one sequence.
[[nodiscard]] StepShape span_shape(std::size_t pos0, std::size_t n) noexcept;

/// Learns the time of a step from the steps that were taken: a line through knots at powers of two rows (reading the weights costs the same
/// for 1 row as for 8, computing does not), plus a cost for each attended position. Every observation corrects the knots beside it and the
/// slope by the part of its error that is theirs (normalised least mean squares, Widrow & Hoff 1960; Nagumo & Noda 1967). A size that was
/// not seen for a while is forgotten when a smaller and a larger one are known, which follow the machine: one that a slow moment made look
/// dear would else never be tried again.
class StepTimes {
 public:
  void observe(const StepShape& shape, double seconds);
  /// 0 before the first observation. Beyond the largest step seen, time grows with the rows; below the smallest, it stays.
  [[nodiscard]] double predict(const StepShape& shape) const noexcept;
  [[nodiscard]] bool empty() const noexcept { return n_observed_ == 0; }

 private:
  static constexpr std::size_t kKnots = 13;  ///< 1, 2, 4 ... 4096 rows
  struct Between {
    std::size_t low;
    std::size_t high;
    double share;  ///< of the high knot
  };
  /// The knots beside `rows`.
  [[nodiscard]] static Between knots_beside(std::size_t rows) noexcept;
  [[nodiscard]] double rows_seconds(double rows) const noexcept;

  void forget_stale() noexcept;

  std::array<double, kKnots> seconds_{};
  std::array<std::uint64_t, kKnots> seen_at_{};  ///< the last observation of each, counted from 1; 0 when there is none
  std::uint64_t n_observed_ = 0;
  double attended_seconds_ = 0.0;  ///< of kAttendedUnit positions
};

}  // namespace quench
