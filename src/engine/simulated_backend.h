#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/step_backend.h"

namespace quench {

/// How long a simulated machine takes.
struct SimulatedMachine {
  double weights_seconds = 0.020;  ///< a pass over the weights: what any step takes at least
  double row_seconds = 0.005;
  double attended_seconds = 1e-8;  ///< of one row and one position
  std::size_t chunk = 512;
  std::size_t vocab_size = 64;
  std::size_t memory = 0;  ///< logits depend on that many of the last tokens; 0: on all, so that texts hardly repeat
};

/// A model of no weights, to try policies on thousands of requests: logits are a hash of the tokens that a model would have seen, which it
/// keeps in the pages themselves, so that a wrong page shows in the answers. Time passes by SimulatedMachine alone.
class SimulatedBackend final : public StepBackend {
 public:
  explicit SimulatedBackend(const SimulatedMachine& machine) : machine_(machine), logits_(machine.vocab_size) {}

  void step(std::span<const SequenceTokens> requests, const StepSink& sink) override;
  [[nodiscard]] std::size_t chunk() const noexcept override { return machine_.chunk; }
  [[nodiscard]] std::size_t vocab_size() const noexcept override { return machine_.vocab_size; }
  [[nodiscard]] double now() const noexcept override { return now_; }

  /// Nothing happens for a while.
  void wait_until(double seconds) noexcept;
  /// One group for each window (0 = all positions), pages of 1 KiB a group.
  [[nodiscard]] static KvLayout layout(std::span<const std::size_t> windows);

 private:
  [[nodiscard]] std::uint64_t hash_visible(const KvSequence& sequence, std::size_t position) const;

  SimulatedMachine machine_;
  double now_ = 0.0;
  std::vector<float> logits_;
};

}  // namespace quench
