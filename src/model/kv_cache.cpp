#include "model/kv_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace quench {

KvCache::KvCache(KvLayout layout, const Options& options) : layout_(std::move(layout)), options_(options), pools_(layout_.groups.size()) {}

std::size_t KvCache::pages_in_use(std::size_t group) const noexcept { return pools_[group].pages.size() - pools_[group].free.size(); }

std::byte* KvCache::keys(std::size_t layer, PageId page, std::size_t kv_head) noexcept {
  const KvLayout::Place place = layout_.layers[layer];
  const std::size_t head = place.slot * layout_.n_kv_heads + kv_head;
  return pools_[place.group].pages[page].data.data() + head * 2 * layout_.head_bytes();
}

std::byte* KvCache::values(std::size_t layer, PageId page, std::size_t kv_head) noexcept {
  return keys(layer, page, kv_head) + layout_.head_bytes();
}

PageId KvCache::allocate(std::size_t group) {
  Pool& pool = pools_[group];
  if (pool.free.empty()) {
    pool.pages.emplace_back();
    pool.free.reserve(pool.pages.capacity());  // so that release() cannot fail
    pool.free.push_back(static_cast<PageId>(pool.pages.size() - 1));
  }
  const PageId id = pool.free.back();
  Page& page = pool.pages[id];
  if (page.data.empty()) {
    const std::uint64_t bytes = layout_.page_bytes(group);
    while (held_bytes_ + bytes > options_.budget_bytes && drop_free_page()) {
    }
    page.data = AlignedBuffer(bytes, "kv cache");
    held_bytes_ += bytes;
  }
  pool.free.pop_back();
  page.references = 1;
  used_bytes_ += layout_.page_bytes(group);
  return id;
}

void KvCache::retain(std::size_t group, PageId page) noexcept { ++pools_[group].pages[page].references; }

void KvCache::release(std::size_t group, PageId page) noexcept {
  Pool& pool = pools_[group];
  if (--pool.pages[page].references != 0) return;
  pool.free.push_back(page);
  used_bytes_ -= layout_.page_bytes(group);
}

std::span<std::byte> KvCache::page_bytes(std::size_t group, PageId page) noexcept {
  return {pools_[group].pages[page].data.data(), layout_.page_bytes(group)};
}

void KvCache::copy_page(std::size_t group, PageId from, PageId to) noexcept {
  std::ranges::copy(page_bytes(group, from), page_bytes(group, to).begin());
}

bool KvCache::drop_free_page() noexcept {
  for (std::size_t group = 0; group < pools_.size(); ++group) {
    for (const PageId id : pools_[group].free) {
      Page& page = pools_[group].pages[id];
      if (page.data.empty()) continue;
      page.data = AlignedBuffer();
      held_bytes_ -= layout_.page_bytes(group);
      return true;
    }
  }
  return false;
}

}  // namespace quench
