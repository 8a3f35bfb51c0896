#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace quench {

/// Rank of a pair that no rule joins. Lower ranks go first.
constexpr std::uint32_t kNoMerge = std::numeric_limits<std::uint32_t>::max();

/// A pair that waits to be joined: the rank in the high half, the position of its left symbol in the low, so that entries compare in the
/// order in which pairs are joined.
struct MergeEntry {
  std::uint64_t key = 0;

  MergeEntry() = default;
  MergeEntry(std::uint32_t rank, std::uint32_t at) noexcept : key((static_cast<std::uint64_t>(rank) << 32) | at) {}
  [[nodiscard]] std::uint32_t rank() const noexcept { return static_cast<std::uint32_t>(key >> 32); }
  [[nodiscard]] std::uint32_t at() const noexcept { return static_cast<std::uint32_t>(key); }
  friend auto operator<=>(const MergeEntry&, const MergeEntry&) = default;
};

/// Entries in the order (rank, position). A join hardly ever makes a pair that ranks before its own: such a queue need not be a heap of
/// single entries. They wait unordered, in one level for each leading bit in which their rank differs from the open one (a radix heap);
/// only those of the open rank are in order, which costs a look where they came from left to right. What does come at or below the open
/// rank, waits in a heap.
class MergeQueue {
 public:
  void clear() noexcept {
    open_.clear();
    taken_ = 0;
    open_rank_ = kNothingOpen;
    for (auto& level : levels_) level.clear();
    late_.clear();
  }

  /// `rank` is not kNoMerge.
  void push(std::uint32_t rank, std::uint32_t at) {
    if (std::int64_t{rank} > open_rank_) {
      level_of(rank).push_back({rank, at});
    } else {
      late_.push_back({rank, at});
      std::push_heap(late_.begin(), late_.end(), std::greater<>());
    }
  }

  [[nodiscard]] std::optional<MergeEntry> pop() {
    if (taken_ == open_.size() && late_.empty() && !open_next()) return std::nullopt;
    if (!late_.empty() && (taken_ == open_.size() || late_.front() < open_[taken_])) {
      std::pop_heap(late_.begin(), late_.end(), std::greater<>());
      const MergeEntry entry = late_.back();
      late_.pop_back();
      return entry;
    }
    return open_[taken_++];
  }

  [[nodiscard]] std::size_t capacity() const noexcept {
    std::size_t sum = open_.capacity() + late_.capacity();
    for (const auto& level : levels_) sum += level.capacity();
    return sum;
  }

 private:
  static constexpr std::int64_t kNothingOpen = -1;

  // Ranks count from one here: nothing is open before rank 0 is.
  [[nodiscard]] std::vector<MergeEntry>& level_of(std::uint32_t rank) noexcept {
    const auto differing = static_cast<std::uint32_t>(rank + 1) ^ static_cast<std::uint32_t>(open_rank_ + 1);
    return levels_[static_cast<std::size_t>(std::bit_width(differing)) - 1];
  }

  // Opens the lowest rank that waits; the others of its level move to lower levels. False where none waits.
  bool open_next() {
    open_.clear();
    taken_ = 0;
    const auto level = std::find_if(levels_.begin(), levels_.end(), [](const auto& entries) { return !entries.empty(); });
    if (level == levels_.end()) return false;
    const std::uint32_t lowest = std::min_element(level->begin(), level->end())->rank();
    open_rank_ = lowest;
    for (const MergeEntry entry : *level) (entry.rank() == lowest ? open_ : level_of(entry.rank())).push_back(entry);
    level->clear();
    if (!std::is_sorted(open_.begin(), open_.end())) std::sort(open_.begin(), open_.end());
    return true;
  }

  std::vector<MergeEntry> open_;  // of the open rank, in order; the first taken_ are gone
  std::size_t taken_ = 0;
  std::int64_t open_rank_ = kNothingOpen;
  std::array<std::vector<MergeEntry>, 32> levels_;
  std::vector<MergeEntry> late_;  // a heap
};

}  // namespace quench
