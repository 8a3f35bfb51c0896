#include "engine/step_planner.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace quench {

std::span<const std::size_t> StepPlanner::plan(std::span<const PlannedSequence> sequences, const StepTimes& times) {
  rows_.assign(sequences.size(), 0);
  StepShape decode;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const PlannedSequence& sequence = sequences[i];
    if (sequence.decode_rows == 0) continue;
    rows_[i] = std::min(sequence.decode_rows, options_.chunk - decode.rows);
    decode += span_shape(sequence.length, rows_[i]);
  }
  share_out(sequences, prompt_rows(sequences, times, decode));
  return rows_;
}

std::size_t StepPlanner::prompt_rows(std::span<const PlannedSequence> sequences, const StepTimes& times, const StepShape& decode) const {
  std::size_t left = 0;
  std::size_t prompts = 0;
  std::size_t deepest = 0;
  for (const PlannedSequence& sequence : sequences) {
    if (sequence.prompt_left == 0) continue;
    left += sequence.prompt_left;
    prompts += 1;
    deepest = std::max(deepest, sequence.length);
  }
  const std::size_t most = std::min(left, options_.chunk - decode.rows);
  // A row for each at least: nobody starves behind shorter ones of the same priority.
  const std::size_t least = std::min(std::max(options_.least_prefill, prompts), most);
  const double alone = times.predict(decode);
  const double allowed = decode.rows > 0 ? alone + std::max(options_.prefill_seconds, alone) : options_.lone_prefill_seconds;
  const auto fits = [&](std::size_t rows) {
    StepShape shape = decode;
    shape += span_shape(deepest, rows);
    return times.predict(shape) <= allowed;
  };
  // Nothing is known before the first step: a small one teaches without making anybody wait.
  if (times.empty() && std::isfinite(allowed)) return std::min<std::size_t>(most, std::max<std::size_t>(least, 64));
  if (fits(most)) return most;
  std::size_t low = least;  // taken even when it does not fit
  std::size_t high = most;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

void StepPlanner::share_out(std::span<const PlannedSequence> sequences, std::size_t rows) {
  prompts_.clear();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].prompt_left > 0) prompts_.push_back(i);
  }
  // The shortest first: what it leaves of its share goes to the others.
  std::ranges::sort(prompts_, {}, [&](std::size_t i) { return std::tuple(-sequences[i].priority, sequences[i].prompt_left, i); });
  for (std::size_t begin = 0; begin < prompts_.size() && rows > 0;) {
    std::size_t end = begin;
    while (end < prompts_.size() && sequences[prompts_[end]].priority == sequences[prompts_[begin]].priority) ++end;
    for (; begin < end && rows > 0; ++begin) {
      const std::size_t share = (rows + end - begin - 1) / (end - begin);
      const std::size_t given = std::min(share, sequences[prompts_[begin]].prompt_left);
      rows_[prompts_[begin]] = given;
      rows -= given;
    }
    begin = end;
  }
}

}  // namespace quench
