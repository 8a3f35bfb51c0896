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
    if (!seen_[knot]) continue;
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

void StepTimes::observe(const StepShape& shape, double seconds) {
  if (shape.rows == 0 || !std::isfinite(seconds) || seconds < 0.0) return;
  const Between beside = knots_beside(shape.rows);
  const double attended = shape.attended / kAttendedUnit;
  for (const std::size_t knot : {beside.low, beside.high}) {
    if (seen_[knot]) continue;
    const double guess = n_seen_ > 0 ? rows_seconds(knot_rows(knot)) : seconds * knot_rows(knot) / static_cast<double>(shape.rows);
    seconds_[knot] = std::max(guess, 0.0);
  }
  for (const std::size_t knot : {beside.low, beside.high}) {
    if (!seen_[knot]) ++n_seen_;
    seen_[knot] = true;
  }
  const double low_share = 1.0 - beside.share;
  const double norm = low_share * low_share + beside.share * beside.share + attended * attended;
  const double correction = kPace * (seconds - predict(shape)) / norm;
  seconds_[beside.low] = std::max(0.0, seconds_[beside.low] + correction * low_share);
  if (beside.high != beside.low) seconds_[beside.high] = std::max(0.0, seconds_[beside.high] + correction * beside.share);
  attended_seconds_ = std::max(0.0, attended_seconds_ + correction * attended);
}

}  // namespace quench
