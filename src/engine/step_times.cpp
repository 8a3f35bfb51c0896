#include "engine/step_times.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace quench {
namespace {

/// Brings the attention's share of a large step to the size of a knot's, so that both learn at the same pace.
constexpr double kAttendedUnit = 65536.0;
/// Of an error, what one observation corrects: machines swing by a third for seconds at a time.
constexpr double kPace = 0.25;
/// A size that seems dear is tried again after as many steps: seldom enough to cost nothing.
constexpr std::uint64_t kForgotten = 64;

constexpr double knot_rows(std::size_t knot) { return static_cast<double>(std::size_t{1} << knot); }

}  // namespace

StepShape& StepShape::operator+=(const StepShape& other) noexcept {
  rows += other.rows;
  attended += other.attended;
  return *this;
}

StepShape span_shape(std::size_t pos0, std::size_t n) noexcept {
  const auto rows = static_cast<double>(n);
  return {.rows = n, .attended = rows * (static_cast<double>(pos0) + (rows + 1.0) / 2.0)};
}

StepTimes::Between StepTimes::knots_beside(std::size_t rows) noexcept {
  rows = std::clamp<std::size_t>(rows, 1, std::size_t{1} << (kKnots - 1));
  const auto low = static_cast<std::size_t>(std::bit_width(rows)) - 1;
  const double share = static_cast<double>(rows) / knot_rows(low) - 1.0;
  return {.low = low, .high = share > 0.0 ? low + 1 : low, .share = share};
}

double StepTimes::rows_seconds(double rows) const noexcept {
  std::size_t below = kKnots;
  std::size_t above = kKnots;
  for (std::size_t knot = 0; knot < kKnots; ++knot) {
    if (seen_at_[knot] == 0) continue;
    if (knot_rows(knot) <= rows) below = knot;
    if (knot_rows(knot) >= rows && above == kKnots) above = knot;
  }
  if (below == kKnots && above == kKnots) return 0.0;
  if (below == kKnots) return seconds_[above];
  if (above == kKnots) return seconds_[below] * rows / knot_rows(below);
  if (below == above) return seconds_[below];
  const double share = (rows - knot_rows(below)) / (knot_rows(above) - knot_rows(below));
  return seconds_[below] + share * (seconds_[above] - seconds_[below]);
}

double StepTimes::predict(const StepShape& shape) const noexcept {
  if (shape.rows == 0) return 0.0;
  return rows_seconds(static_cast<double>(shape.rows)) + attended_seconds_ * shape.attended / kAttendedUnit;
}

void StepTimes::forget_stale() noexcept {
  std::size_t smallest = 0;
  std::size_t largest = kKnots - 1;
  while (smallest < largest && seen_at_[smallest] == 0) ++smallest;
  while (largest > smallest && seen_at_[largest] == 0) --largest;
  for (std::size_t knot = smallest + 1; knot < largest; ++knot) {
    if (n_observed_ - seen_at_[knot] >= kForgotten) seen_at_[knot] = 0;
  }
}

void StepTimes::observe(const StepShape& shape, double seconds) {
  if (shape.rows == 0 || !std::isfinite(seconds) || seconds < 0.0) return;
  n_observed_ += 1;
  forget_stale();
  const Between beside = knots_beside(shape.rows);
  const double attended = shape.attended / kAttendedUnit;
  // What was never seen differs from what the others say as this step does.
  const double predicted = predict(shape);
  const auto guess = [&](std::size_t knot) {
    if (!(predicted > 0.0)) return seconds * knot_rows(knot) / static_cast<double>(shape.rows);
    return rows_seconds(knot_rows(knot)) * seconds / predicted;
  };
  const double low_guess = guess(beside.low);
  const double high_guess = guess(beside.high);
  if (seen_at_[beside.low] == 0) seconds_[beside.low] = low_guess;
  if (seen_at_[beside.high] == 0) seconds_[beside.high] = high_guess;
  seen_at_[beside.low] = seen_at_[beside.high] = n_observed_;
  const double low_share = 1.0 - beside.share;
  const double norm = low_share * low_share + beside.share * beside.share + attended * attended;
  const double correction = kPace * (seconds - predict(shape)) / norm;
  seconds_[beside.low] = std::max(0.0, seconds_[beside.low] + correction * low_share);
  if (beside.high != beside.low) seconds_[beside.high] = std::max(0.0, seconds_[beside.high] + correction * beside.share);
  attended_seconds_ = std::max(0.0, attended_seconds_ + correction * attended);
}

}  // namespace quench
