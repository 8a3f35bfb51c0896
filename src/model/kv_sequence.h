#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/kv_cache.h"
#include "model/kv_page_share.h"

namespace quench {

/// The first page that a step at `length` still reads; window 0 = all.
[[nodiscard]] std::size_t first_visible_page(std::size_t window, std::size_t length) noexcept;

/// One sequence's positions: for each group a list of pages, and a length. Appending K and V of a layer does not change the length;
/// one advance() per step does. The cache outlives its sequences.
class KvSequence {
 public:
  explicit KvSequence(KvCache& cache);
  /// The `length` positions that the shares hold, 64 each, in order. The shares have every page that a step at `length` reads
  /// (first_visible_page); a partial last page is copied when this sequence appends to it.
  KvSequence(KvCache& cache, std::span<const KvPageShare* const> shares, std::size_t length);
  KvSequence(KvSequence&& other) noexcept;
  KvSequence& operator=(KvSequence&& other) noexcept;
  KvSequence(const KvSequence&) = delete;
  KvSequence& operator=(const KvSequence&) = delete;
  ~KvSequence();

  /// A second sequence with the same positions. Pages are shared; a partial last page is copied when one of the two appends to it.
  [[nodiscard]] KvSequence fork() const;

  [[nodiscard]] KvCache& cache() const noexcept { return *cache_; }
  [[nodiscard]] std::size_t length() const noexcept { return length_; }

  /// A share in the pages of positions [64 * index, 64 * index + 64); groups whose window has passed them have none.
  [[nodiscard]] KvPageShare share(std::size_t index) const;

  /// Room in the lists of pages for that many positions, so that growing to them allocates nothing but pages.
  void reserve(std::size_t positions);
  /// Bytes that the cache must have free for `n` further positions, appended in steps of at most `chunk`.
  [[nodiscard]] std::uint64_t bytes_needed(std::size_t n, std::size_t chunk) const noexcept;
  /// Throws when `n` further positions, appended in steps of at most `chunk`, do not fit: Error(kBadRequest) past the context or when
  /// not even an empty cache holds them, Error(kOutOfMemory) when other sequences take the room. Both numbers are in the message.
  void check_room(std::size_t n, std::size_t chunk) const;
  /// Makes positions [length, length + n) writable: takes pages, copies a shared partial one. Throws as check_room(n, n) does, before
  /// anything is changed.
  void prepare(std::size_t n);
  /// Prepared positions become part of the sequence; pages that fell behind their group's window are released.
  void advance(std::size_t n);

  /// Keeps the first `n` positions; later appends give the same bits as if the rest had never been. Throws Error(kBadRequest) when n
  /// exceeds the length, or when the window's pages before n are already released (see earliest_truncation).
  void truncate(std::size_t n);
  /// The smallest n > 0 that truncate takes now; 0 is always taken.
  [[nodiscard]] std::size_t earliest_truncation() const noexcept;

  /// The page that holds positions [64 * index, 64 * index + 64) of the layer; it is prepared and not released.
  [[nodiscard]] PageId page(std::size_t layer, std::size_t index) const noexcept {
    return tables_[cache_->layout().layers[layer].group].pages[index];
  }

 private:
  struct Table {
    std::vector<PageId> pages;  ///< by page index; kNoPage once released
    std::size_t first_kept = 0;
  };

  /// Pages that the group must take for `n` further positions in steps of `chunk`, at the step that needs most.
  [[nodiscard]] std::size_t new_pages(std::size_t group, std::size_t n, std::size_t chunk) const noexcept;
  [[nodiscard]] bool must_copy_last(std::size_t group) const noexcept;
  void release_all() noexcept;

  KvCache* cache_;
  std::vector<Table> tables_;
  std::size_t length_ = 0;
};

}  // namespace quench
