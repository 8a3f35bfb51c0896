#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "text/merge_queue.h"

namespace quench {

/// What decides merges: the rank of two neighbours, and what they become.
template <typename Rules>
concept MergeRules = requires(const Rules& rules, const typename Rules::Symbol& symbol, std::uint32_t rank) {
  { rules.rank(symbol, symbol) } -> std::same_as<std::uint32_t>;
  { rules.join(symbol, symbol, rank) } -> std::same_as<typename Rules::Symbol>;
};

/// Memory that merging reuses from piece to piece.
struct MergeBuffers {
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint32_t> previous;
  std::vector<std::uint32_t> next;
  MergeQueue queue;
};

/// Up to this many symbols a scan of all ranks beats a queue: 32 ranks are two cache lines.
constexpr std::size_t kFlatSymbols = 48;

/// Joins the lowest-ranked pair, the leftmost of equals, until none is left. Quadratic: for short pieces.
template <MergeRules Rules>
void merge_flat(const Rules& rules, std::vector<typename Rules::Symbol>& symbols, MergeBuffers& buffers) {
  std::size_t count = symbols.size();
  auto& ranks = buffers.ranks;
  ranks.resize(count);
  for (std::size_t i = 0; i + 1 < count; ++i) ranks[i] = rules.rank(symbols[i], symbols[i + 1]);
  while (count > 1) {
    const auto best =
        static_cast<std::size_t>(std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count) - 1) - ranks.begin());
    if (ranks[best] == kNoMerge) break;
    symbols[best] = rules.join(symbols[best], symbols[best + 1], ranks[best]);
    --count;
    for (std::size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      ranks[i] = ranks[i + 1];
    }
    if (best > 0) ranks[best - 1] = rules.rank(symbols[best - 1], symbols[best]);
    if (best + 1 < count) ranks[best] = rules.rank(symbols[best], symbols[best + 1]);
  }
  symbols.resize(count);
}

/// The same result in O(n log n): a queue of (rank, position) over a linked list. An entry is stale when the pair at its position has
/// another rank by now; when it has the same rank again, the entry is as good as a fresh one.
template <MergeRules Rules>
class QueueMerge {
 public:
  using Symbol = typename Rules::Symbol;
  QueueMerge(const Rules& rules, std::vector<Symbol>& symbols, MergeBuffers& buffers)
      : rules_(rules), symbols_(symbols), ranks_(buffers.ranks), previous_(buffers.previous), next_(buffers.next), queue_(buffers.queue) {}

  void run() {
    seed();
    while (const auto entry = queue_.pop()) {
      if (ranks_[entry->at()] == entry->rank()) join_at(entry->at(), entry->rank());
    }
    compact();
  }

 private:
  void seed() {
    const auto count = static_cast<std::uint32_t>(symbols_.size());
    ranks_.assign(count, kNoMerge);
    previous_.resize(count);
    next_.resize(count);
    queue_.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      previous_[i] = i - 1;  // wraps to kNone at the front
      next_[i] = i + 1 < count ? i + 1 : kNone;
    }
    for (std::uint32_t i = 0; i + 1 < count; ++i) {
      ranks_[i] = rules_.rank(symbols_[i], symbols_[i + 1]);
      if (ranks_[i] != kNoMerge) queue_.push(ranks_[i], i);
    }
  }

  void join_at(std::uint32_t at, std::uint32_t rank) {
    const std::uint32_t right = next_[at];
    symbols_[at] = rules_.join(symbols_[at], symbols_[right], rank);
    next_[at] = next_[right];
    ranks_[right] = kNoMerge;
    if (next_[at] != kNone) previous_[next_[at]] = at;
    if (previous_[at] != kNone) update(previous_[at], at);
    if (next_[at] != kNone) {
      update(at, next_[at]);
    } else {
      ranks_[at] = kNoMerge;
    }
  }

  void update(std::uint32_t left, std::uint32_t right) {
    ranks_[left] = rules_.rank(symbols_[left], symbols_[right]);
    if (ranks_[left] != kNoMerge) queue_.push(ranks_[left], left);
  }

  void compact() {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i != kNone; i = next_[i]) symbols_[count++] = symbols_[i];
    symbols_.resize(count);
  }

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  const Rules& rules_;
  std::vector<Symbol>& symbols_;
  std::vector<std::uint32_t>& ranks_;
  std::vector<std::uint32_t>& previous_;
  std::vector<std::uint32_t>& next_;
  MergeQueue& queue_;
};

/// Fewer than 2^32 - 1 symbols.
template <MergeRules Rules>
void merge_symbols(const Rules& rules, std::vector<typename Rules::Symbol>& symbols, MergeBuffers& buffers) {
  if (symbols.size() <= kFlatSymbols) {
    merge_flat(rules, symbols, buffers);
  } else {
    QueueMerge<Rules>(rules, symbols, buffers).run();
  }
}

}  // namespace quench
