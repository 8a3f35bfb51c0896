#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace quench {
namespace {

/// The pair, as a fraction of pairs, that turns `rotations` times over the original context. Source: Peng et al. 2023, section 3.2.
double pair_of_rotations(const RopeConfig& rope, double rotations) {
  const double n_rot = static_cast<double>(rope.n_rot);
  return n_rot * std::log(rope.original_context / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(rope.base));
}

/// Weight of the unscaled frequency: 1 for pairs that turn often, 0 for those that never complete a turn.
double extrapolated_share(const RopeConfig& rope, std::size_t pair) {
  const double low = std::max(0.0, std::floor(pair_of_rotations(rope, rope.beta_fast)));
  const double high = std::min(static_cast<double>(rope.n_rot) - 1.0, std::ceil(pair_of_rotations(rope, rope.beta_slow)));
  const double place = (static_cast<double>(pair) - low) / std::max(0.001, high - low);
  return (1.0 - std::clamp(place, 0.0, 1.0)) * rope.extrapolation;
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeConfig& rope) {
  RopeFrequencies frequencies;
  frequencies.magnitude = rope.attention_factor;
  if (rope.scaling == RopeScaling::kYarn && rope.extrapolation != 0.0 && rope.factor > 1.0) {
    frequencies.magnitude *= 1.0 + 0.1 * std::log(rope.factor);
  }
  for (std::size_t pair = 0; pair < rope.n_rot / 2; ++pair) {
    double radians = std::pow(rope.base, -2.0 * static_cast<double>(pair) / static_cast<double>(rope.n_rot));
    if (!rope.frequency_divisors.empty()) radians /= static_cast<double>(rope.frequency_divisors[pair]);
    if (rope.scaling != RopeScaling::kNone) {
      const double share = rope.scaling == RopeScaling::kYarn ? extrapolated_share(rope, pair) : 0.0;
      radians = radians / rope.factor * (1.0 - share) + radians * share;
    }
    frequencies.radians.push_back(radians);
  }
  return frequencies;
}

RopeTable::RopeTable(const RopeConfig& rope, std::size_t max_rows)
    : style_(rope.style),
      frequencies_(rope_frequencies(rope)),
      cos_({max_rows, rope.n_rot / 2}, "rope table"),
      sin_({max_rows, rope.n_rot / 2}, "rope table") {}

void RopeTable::fill(std::size_t first_row, std::size_t pos0, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double position = static_cast<double>(pos0 + i);
    const auto cos_row = cos_.view().row(first_row + i).elements();
    const auto sin_row = sin_.view().row(first_row + i).elements();
    for (std::size_t pair = 0; pair < frequencies_.radians.size(); ++pair) {
      const double angle = position * frequencies_.radians[pair];
      cos_row[pair] = static_cast<float>(std::cos(angle) * frequencies_.magnitude);
      sin_row[pair] = static_cast<float>(std::sin(angle) * frequencies_.magnitude);
    }
  }
}

}  // namespace quench
