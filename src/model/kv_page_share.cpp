#include "model/kv_page_share.h"

#include <utility>

namespace quench {

KvPageShare::KvPageShare(KvCache& cache, std::vector<PageId> pages) noexcept : cache_(&cache), pages_(std::move(pages)) {
  for (std::size_t group = 0; group < pages_.size(); ++group) {
    if (has(group)) cache_->retain(group, pages_[group]);
  }
}

KvPageShare KvPageShare::allocate(KvCache& cache, const std::vector<bool>& groups) {
  KvPageShare share(cache, std::vector<PageId>(groups.size(), kNoPage));
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group]) share.pages_[group] = cache.allocate(group);
  }
  return share;
}

std::span<std::byte> KvPageShare::bytes(std::size_t group) noexcept { return cache_->page_bytes(group, pages_[group]); }

std::span<const std::byte> KvPageShare::bytes(std::size_t group) const noexcept { return cache_->page_bytes(group, pages_[group]); }

KvPageShare::KvPageShare(KvPageShare&& other) noexcept : cache_(other.cache_), pages_(std::exchange(other.pages_, {})) {}

KvPageShare& KvPageShare::operator=(KvPageShare&& other) noexcept {
  if (this == &other) return *this;
  drop_all();
  cache_ = other.cache_;
  pages_ = std::exchange(other.pages_, {});
  return *this;
}

KvPageShare::~KvPageShare() { drop_all(); }

void KvPageShare::drop_all() noexcept {
  for (std::size_t group = 0; group < pages_.size(); ++group) drop(group);
}

bool KvPageShare::used_elsewhere(std::size_t group) const noexcept { return has(group) && cache_->shared(group, pages_[group]); }

bool KvPageShare::used_elsewhere() const noexcept {
  for (std::size_t group = 0; group < pages_.size(); ++group) {
    if (used_elsewhere(group)) return true;
  }
  return false;
}

void KvPageShare::drop(std::size_t group) noexcept {
  if (has(group)) cache_->release(group, std::exchange(pages_[group], kNoPage));
}

void KvPageShare::fill_from(KvPageShare&& other) noexcept {
  for (std::size_t group = 0; group < pages_.size(); ++group) {
    if (!has(group)) pages_[group] = std::exchange(other.pages_[group], kNoPage);
  }
}

}  // namespace quench
