#include "engine/simulated_backend.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "engine/step_times.h"

namespace quench {
namespace {

std::byte* slot(const KvSequence& sequence, std::size_t layer, std::size_t position) {
  const PageId page = sequence.page(layer, position / kPagePositions);
  return sequence.cache().keys(layer, page, 0) + position % kPagePositions * sizeof(Token);
}

/// FNV-1a, a token at a time.
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) { return (hash ^ value) * 0x100000001B3u; }

}  // namespace

KvLayout SimulatedBackend::layout(std::span<const std::size_t> windows) {
  KvLayout layout{.n_kv_heads = 1, .head_dim = 4, .groups = {}, .layers = {}};
  for (const std::size_t window : windows) {
    layout.layers.push_back({.group = layout.groups.size(), .slot = 0});
    layout.groups.push_back({.window = window, .n_layers = 1});
  }
  return layout;
}

void SimulatedBackend::wait_until(double seconds) noexcept { now_ = std::max(now_, seconds); }

std::uint64_t SimulatedBackend::hash_visible(const KvSequence& sequence, std::size_t position) const {
  const KvLayout& layout = sequence.cache().layout();
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (std::size_t layer = 0; layer < layout.layers.size(); ++layer) {
    const std::size_t window = layout.groups[layout.layers[layer].group].window;
    std::size_t first = window == 0 || position + 1 < window ? 0 : position + 1 - window;
    if (machine_.memory != 0 && position + 1 > machine_.memory) first = std::max(first, position + 1 - machine_.memory);
    for (std::size_t i = first; i <= position; ++i) {
      Token token = 0;
      std::memcpy(&token, slot(sequence, layer, i), sizeof(token));
      hash = mix(hash, token);
    }
  }
  return machine_.memory == 0 ? mix(hash, position) : hash;
}

void SimulatedBackend::step(std::span<const SequenceTokens> requests, const StepSink& sink) {
  StepShape shape;
  for (const SequenceTokens& request : requests) {
    KvSequence& sequence = *request.sequence;
    sequence.prepare(request.tokens.size());
    for (std::size_t layer = 0; layer < sequence.cache().layout().layers.size(); ++layer) {
      for (std::size_t i = 0; i < request.tokens.size(); ++i) {
        std::memcpy(slot(sequence, layer, sequence.length() + i), &request.tokens[i], sizeof(Token));
      }
    }
    shape += span_shape(sequence.length(), request.tokens.size());
  }
  now_ += machine_.weights_seconds + machine_.row_seconds * static_cast<double>(shape.rows) + machine_.attended_seconds * shape.attended;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t n = requests[i].tokens.size();
    const std::size_t wanted = requests[i].wanted == Wanted::kNone ? 0 : requests[i].wanted == Wanted::kLast ? 1 : n;
    for (std::size_t row = n - wanted; row < n; ++row) {
      Xoshiro256 random(hash_visible(*requests[i].sequence, requests[i].sequence->length() + row));
      for (float& logit : logits_) logit = static_cast<float>(random.below(4096)) / 512.0f;
      sink(i, row, logits_);
    }
  }
  for (const SequenceTokens& request : requests) request.sequence->advance(request.tokens.size());
}

}  // namespace quench
