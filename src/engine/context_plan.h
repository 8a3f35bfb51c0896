#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "model/kv_cache.h"

namespace quench {

/// How long one sequence may get, and why.
struct ContextPlan {
  std::size_t context = 0;         ///< positions
  std::size_t trained = 0;         ///< what the file was trained for
  std::size_t fits = 0;            ///< positions that the budget holds
  std::uint64_t budget_bytes = 0;  ///< of the KV cache
  std::uint64_t cache_bytes = 0;   ///< of one sequence of `context` positions

  [[nodiscard]] bool limited_by_memory() const noexcept { return context < trained && context == fits; }
};

/// The context is what the file was trained for, bounded by half of the memory that is free after the weights; or what is asked for,
/// when that fits both.
///
/// available_bytes: free memory once the weights are loaded (available_memory_bytes)
/// budget_bytes: of the cache, instead of half of that; 0 = none given
/// chunk: largest prefill step, which a windowed model holds beside its window
///
/// Throws Error(kBadRequest) when `requested` is 0 or beyond what the file was trained for, Error(kOutOfMemory) when it does not fit, not
/// even one page does, or the budget is more than what is free; with both numbers.
[[nodiscard]] ContextPlan plan_context(const KvLayout& layout, std::size_t trained, std::uint64_t available_bytes, std::size_t chunk,
                                       std::optional<std::size_t> requested, std::uint64_t budget_bytes = 0);

}  // namespace quench
