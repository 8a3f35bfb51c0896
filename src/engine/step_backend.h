#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "model/forward.h"

namespace quench {

/// What a BatchEngine runs its steps on: a model, or a simulation of one with a clock of its own.
class StepBackend {
 public:
  StepBackend() = default;
  StepBackend(const StepBackend&) = delete;
  StepBackend& operator=(const StepBackend&) = delete;
  virtual ~StepBackend() = default;

  /// As Forward::step.
  virtual void step(std::span<const SequenceTokens> requests, const StepSink& sink) = 0;
  /// Most rows in a step.
  [[nodiscard]] virtual std::size_t chunk() const noexcept = 0;
  [[nodiscard]] virtual std::size_t vocab_size() const noexcept = 0;
  /// Seconds; never goes back.
  [[nodiscard]] virtual double now() const noexcept = 0;
};

/// A model, in real time. `forward` outlives this.
class ForwardBackend final : public StepBackend {
 public:
  explicit ForwardBackend(Forward& forward) : forward_(forward) {}

  void step(std::span<const SequenceTokens> requests, const StepSink& sink) override { forward_.step(requests, sink); }
  [[nodiscard]] std::size_t chunk() const noexcept override { return forward_.chunk(); }
  [[nodiscard]] std::size_t vocab_size() const noexcept override { return forward_.model().config().n_vocab; }
  [[nodiscard]] double now() const noexcept override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

 private:
  Forward& forward_;
};

}  // namespace quench
