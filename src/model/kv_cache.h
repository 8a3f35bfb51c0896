#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "kernels/attention.h"

namespace quench {

struct ModelConfig;

/// Layers that see the same positions share pages.
struct KvGroup {
  std::size_t window = 0;  ///< positions that a query sees, itself included; 0 = all
  std::size_t n_layers = 0;
};

/// How a model's layers lie in pages. A page of a group holds, for 64 positions: [layer of the group][kv head][keys, then values], each as
/// page_head_bytes (kernels/attention.h) lays it out.
struct KvLayout {
  struct Place {
    std::size_t group;
    std::size_t slot;  ///< which layer of the group
  };
  CacheType type = CacheType::kF16;
  std::size_t n_kv_heads = 0;
  std::size_t head_dim = 0;
  std::vector<KvGroup> groups;
  std::vector<Place> layers;  ///< by layer of the model

  /// Of one head's keys or values in a page.
  [[nodiscard]] std::size_t head_bytes() const noexcept { return page_head_bytes(type, head_dim); }
  [[nodiscard]] std::uint64_t page_bytes(std::size_t group) const noexcept {
    return static_cast<std::uint64_t>(groups[group].n_layers) * n_kv_heads * 2 * head_bytes();
  }
  /// Of all groups together, as long as no window has passed a position.
  [[nodiscard]] std::uint64_t bytes_per_position() const noexcept;
  /// What one sequence of `positions` holds at most, when it is filled in steps of `chunk` positions.
  [[nodiscard]] std::uint64_t bytes_for(std::size_t positions, std::size_t chunk) const noexcept;
};

/// Groups the layers by their window. Throws Error(kUnsupported) for a q8_0 cache of a head_dim that is no multiple of 32.
[[nodiscard]] KvLayout make_kv_layout(const ModelConfig& config, CacheType type);

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
  /// Bytes in pages that a sequence or a KvPageShare refers to.
  [[nodiscard]] std::uint64_t used_bytes() const noexcept { return used_bytes_; }
  [[nodiscard]] std::uint64_t free_bytes() const noexcept { return options_.budget_bytes - used_bytes_; }
  [[nodiscard]] std::size_t pages_in_use(std::size_t group) const noexcept;

  [[nodiscard]] std::byte* keys(std::size_t layer, PageId page, std::size_t kv_head) noexcept;
  [[nodiscard]] std::byte* values(std::size_t layer, PageId page, std::size_t kv_head) noexcept;

 private:
  friend class KvSequence;
  friend class KvPageShare;
  struct Page {
    AlignedBuffer data;
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
  [[nodiscard]] std::span<std::byte> page_bytes(std::size_t group, PageId page) noexcept;
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
