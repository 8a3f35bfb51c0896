#pragma once

#include <cstdint>
#include <optional>

#include "base/read_probe.h"
#include "kernels/compute.h"
#include "model/step_cost.h"

namespace quench::cli {

/// What the machine can do, measured in the run that it judges. 0 = not measured.
struct Roofline {
  double bytes_per_second = 0;
  double int8_per_second = 0;
  double f32_per_second = 0;
  double bf16_per_second = 0;  ///< 0 = that of f32

  /// The better of each.
  void raise(const Roofline& other) noexcept;
};

/// The share of the roofline that work done in `seconds` reached: bytes read over what could be read, and the time that the arithmetic
/// takes at full rate over the time taken. Nothing where the roofline was not measured.
[[nodiscard]] std::optional<double> read_share(const StepCost& cost, double seconds, const Roofline& roofline) noexcept;
[[nodiscard]] std::optional<double> operation_share(const StepCost& cost, double seconds, const Roofline& roofline) noexcept;

/// Measures rooflines; holds the buffer that is read.
class RooflineProbe {
 public:
  /// Throws Error(kOutOfMemory).
  RooflineProbe(std::uint64_t bytes, ThreadPool& pool);

  /// Forgets what was, and takes the best of five passes.
  void restart(const Compute& compute);
  /// One more pass. Returns what it measured; best() is raised by it.
  Roofline pass(const Compute& compute);

  [[nodiscard]] const Roofline& best() const noexcept { return best_; }
  [[nodiscard]] int passes() const noexcept { return passes_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return reads_.size_bytes(); }

 private:
  ReadProbe reads_;
  Roofline best_;
  int passes_ = 0;
};

}  // namespace quench::cli
