#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/step_times.h"

namespace quench {

struct StepPlannerOptions {
  std::size_t chunk = 512;  ///< most rows in a step
  double prefill_seconds =
      0.1;  ///< that prompts may add to a step in which somebody waits for a token; one decode step when that is longer
  double lone_prefill_seconds = 0.5;  ///< of a step that holds prompts only: what a newcomer waits for at most; infinity where nobody comes
  std::size_t least_prefill = 16;     ///< rows of prompts in any step, so that they advance on the slowest machine
};

/// A sequence that could take part in the next step.
struct PlannedSequence {
  std::size_t length = 0;       ///< positions before the step
  std::size_t decode_rows = 0;  ///< one and its draft; 0 while the prompt is being computed
  std::size_t prompt_left = 0;  ///< tokens of the prompt that remain; 0 when decode_rows is not
  int priority = 0;             ///< the higher, the sooner
};

/// Decides what the next step computes. Every sequence that waits for a token gets it; prompts share what is left of the rows and of the
/// time, equally within a priority, so that a short prompt behind a long one takes about twice as long as alone.
class StepPlanner {
 public:
  explicit StepPlanner(const StepPlannerOptions& options) : options_(options) {}

  /// Rows of each sequence in the next step, in the order given; valid until the next call. Decode rows are given in full, first come first
  /// served while the chunk has room.
  [[nodiscard]] std::span<const std::size_t> plan(std::span<const PlannedSequence> sequences, const StepTimes& times);

  [[nodiscard]] const StepPlannerOptions& options() const noexcept { return options_; }

 private:
  void share_out(std::span<const PlannedSequence> sequences, std::size_t rows);
  [[nodiscard]] std::size_t prompt_rows(std::span<const PlannedSequence> sequences, const StepTimes& times, const StepShape& decode) const;

  StepPlannerOptions options_;
  std::vector<std::size_t> rows_;
  std::vector<std::size_t> prompts_;  ///< indices of sequences with a prompt, by priority, least left first
};

}  // namespace quench
