#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/aligned.h"
#include "base/float16.h"
#include "kernels/attention.h"

namespace quench {

struct ModelConfig;

/// Layers that see the same positions share pages.
struct KvGroup {
  std::size_t window = 0;  ///< positions that a query sees, itself included; 0 = all
  std::size_t n_layers = 0;
};

/// How a model's layers lie in pages. A page of a group holds, for 64 positions: [layer of the group][kv head][keys, then values], where
/// keys are [64/16][head_dim][16] and values [64][head_dim], f16.
struct KvLayout {
  struct Place {
    std::size_t group;
    std::size_t slot;  ///< which layer of the group
  };
  std::size_t n_kv_heads = 0;
  std::size_t head_dim = 0;
  std::vector<KvGroup> groups;
  std::vector<Place> layers;  ///< by layer of the model

  [[nodiscard]] std::size_t page_elements(std::size_t group) const noexcept {
    return groups[group].n_layers * n_kv_heads * 2 * page_head_elements(head_dim);
  }
  [[nodiscard]] std::uint64_t page_bytes(std::size_t group) const noexcept { return page_elements(group) * sizeof(F16); }
  /// Of all groups together, as long as no window has passed a position.
  [[nodiscard]] std::uint64_t bytes_per_position() const noexcept;
  /// What one sequence of `positions` holds at most, when it is filled in steps of `chunk` positions.
  [[nodiscard]] std::uint64_t bytes_for(std::size_t positions, std::size_t chunk) const noexcept;
};

/// Groups the layers by their window.
[[nodiscard]] KvLayout make_kv_layout(const ModelConfig& config);

using PageId = std::uint32_t;
inline constexpr PageId kNoPage = std::numeric_limits<PageId>::max();

/// Reference-counted pages under one byte budget that is fixed at start. Memory is taken from the system page by page, kept for reuse,
/// and never exceeds the budget. One thread at a time.
class KvCache {
 public:
  struct Options {
    std::uint64_t budget_bytes = 0;
    std::size_t context = 0;  ///< positions that one sequence may reach
  };

  KvCache(KvLayout layout, const Options& options);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  [[nodiscard]] const KvLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::uint64_t budget_bytes() const noexcept { return options_.budget_bytes; }
  [[nodiscard]] std::size_t context() const noexcept { return options_.context; }
  /// Bytes in pages that a sequence refers to.
  [[nodiscard]] std::uint64_t used_bytes() const noexcept { return used_bytes_; }
  [[nodiscard]] std::size_t pages_in_use(std::size_t group) const noexcept;

  [[nodiscard]] F16* keys(std::size_t layer, PageId page, std::size_t kv_head) noexcept;
  [[nodiscard]] F16* values(std::size_t layer, PageId page, std::size_t kv_head) noexcept;

 private:
  friend class KvSequence;
  struct Page {
    AlignedArray<F16> data;
    std::uint32_t references = 0;
  };
  struct Pool {
    std::vector<Page> pages;
    std::vector<PageId> free;
  };

  [[nodiscard]] PageId allocate(std::size_t group);
  void retain(std::size_t group, PageId page) noexcept;
  void release(std::size_t group, PageId page) noexcept;
  [[nodiscard]] bool shared(std::size_t group, PageId page) const noexcept { return pools_[group].pages[page].references > 1; }
  void copy_page(std::size_t group, PageId from, PageId to) noexcept;
  /// Gives the memory of one unused page back to the system; false when there is none.
  bool drop_free_page() noexcept;

  KvLayout layout_;
  Options options_;
  std::vector<Pool> pools_;
  std::uint64_t used_bytes_ = 0;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace quench
