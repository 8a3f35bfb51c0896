#pragma once

#include <cstddef>
#include <cstdint>

#include "model/kv_cache.h"
#include "model/model.h"

namespace quench {

/// What a request must read and compute at least, for rooflines. Embedding rows, norms and activations are left out: they are small, and
/// leaving them out keeps a rate below what it would be.
struct StepCost {
  std::uint64_t weight_bytes = 0;  ///< each matrix once a pass; of routed experts, what one token uses
  std::uint64_t cache_bytes = 0;   ///< each visible position once a pass and layer
  /// A multiplication and an addition are two operations.
  std::uint64_t int8_operations = 0;  ///< linear layers whose activations are quantized; scores of a q8_0 cache, too
  std::uint64_t f32_operations = 0;   ///< linear layers of f32 and f16 weights; attention
  std::uint64_t bf16_operations = 0;  ///< linear layers of bf16 weights

  [[nodiscard]] std::uint64_t bytes() const noexcept { return weight_bytes + cache_bytes; }
  [[nodiscard]] std::uint64_t operations() const noexcept { return int8_operations + f32_operations + bf16_operations; }
  StepCost& operator+=(const StepCost& other) noexcept;
};

/// Forward::prefill of `n` tokens after `pos0` others in passes of `chunk`: logits of the last row only, and in the last layer nothing
/// but keys and values of the other rows.
[[nodiscard]] StepCost prefill_cost(const Model& model, const KvLayout& layout, std::size_t pos0, std::size_t n,
                                    std::size_t chunk) noexcept;
/// `n` steps of one token for each of `sequences` sequences, the first one after `pos0` others.
[[nodiscard]] StepCost decode_cost(const Model& model, const KvLayout& layout, std::size_t pos0, std::size_t n,
                                   std::size_t sequences = 1) noexcept;

}  // namespace quench
