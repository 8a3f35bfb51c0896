#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/kv_cache.h"

namespace quench {

/// A share in the pages, one of each group, that hold 64 positions of a sequence: they stay as long as the share does. A group whose window
/// had passed the positions has no page here. The cache outlives its shares.
class KvPageShare {
 public:
  KvPageShare() = default;
  /// pages  by group; kNoPage where there is none
  KvPageShare(KvCache& cache, std::vector<PageId> pages) noexcept;
  KvPageShare(KvPageShare&& other) noexcept;
  KvPageShare& operator=(KvPageShare&& other) noexcept;
  KvPageShare(const KvPageShare&) = delete;
  KvPageShare& operator=(const KvPageShare&) = delete;
  ~KvPageShare();

  /// New pages of the `groups` that are true, zero or what was in them before. The caller has seen to it that the budget allows them.
  /// Throws Error(kOutOfMemory).
  [[nodiscard]] static KvPageShare allocate(KvCache& cache, const std::vector<bool>& groups);

  /// The contents of the group's page (KvLayout tells how they lie).
  [[nodiscard]] std::span<std::byte> bytes(std::size_t group) noexcept;
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t group) const noexcept;
  [[nodiscard]] PageId page(std::size_t group) const noexcept { return pages_[group]; }
  [[nodiscard]] bool has(std::size_t group) const noexcept { return pages_[group] != kNoPage; }
  /// Whether somebody else holds the group's page too, so that dropping it frees nothing.
  [[nodiscard]] bool used_elsewhere(std::size_t group) const noexcept;
  [[nodiscard]] bool used_elsewhere() const noexcept;
  /// Gives up the group's page.
  void drop(std::size_t group) noexcept;
  /// Takes from `other` the groups that this one lacks; both hold the same positions.
  void fill_from(KvPageShare&& other) noexcept;

 private:
  void drop_all() noexcept;

  KvCache* cache_ = nullptr;
  std::vector<PageId> pages_;
};

}  // namespace quench
