#include "model/kv_sequence.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace quench {
namespace {

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

std::size_t first_visible_page(std::size_t window, std::size_t length) noexcept {
  if (window == 0 || length < window) return 0;
  return (length - window + 1) / kPagePositions;
}

KvSequence::KvSequence(KvCache& cache) : cache_(&cache), tables_(cache.layout().groups.size()) {}

KvSequence::KvSequence(KvCache& cache, std::span<const KvPageShare* const> shares, std::size_t length)
    : cache_(&cache), tables_(cache.layout().groups.size()), length_(length) {
  const std::size_t n_pages = ceil_div(length, kPagePositions);
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    Table& table = tables_[group];
    table.pages.assign(n_pages, kNoPage);
    table.first_kept = n_pages;
    while (table.first_kept > 0 && shares[table.first_kept - 1]->has(group)) {
      const PageId page = shares[--table.first_kept]->page(group);
      table.pages[table.first_kept] = page;
      cache.retain(group, page);
    }
  }
}

KvSequence::KvSequence(KvSequence&& other) noexcept
    : cache_(other.cache_), tables_(std::move(other.tables_)), length_(std::exchange(other.length_, 0)) {
  other.tables_.clear();
}

KvSequence& KvSequence::operator=(KvSequence&& other) noexcept {
  if (this == &other) return *this;
  release_all();
  cache_ = other.cache_;
  tables_ = std::move(other.tables_);
  length_ = std::exchange(other.length_, 0);
  other.tables_.clear();
  return *this;
}

KvSequence::~KvSequence() { release_all(); }

void KvSequence::release_all() noexcept {
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    for (const PageId page : tables_[group].pages) {
      if (page != kNoPage) cache_->release(group, page);
    }
    tables_[group] = {};
  }
  length_ = 0;
}

KvSequence KvSequence::fork() const {
  KvSequence copy(*cache_);
  copy.length_ = length_;
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    Table& table = copy.tables_[group];
    table = tables_[group];
    // A page that is prepared but holds no position yet is not shared: both would write to it.
    table.pages.resize(std::min(table.pages.size(), ceil_div(length_, kPagePositions)));
    for (const PageId page : table.pages) {
      if (page != kNoPage) cache_->retain(group, page);
    }
  }
  return copy;
}

KvPageShare KvSequence::share(std::size_t index) const {
  std::vector<PageId> pages(tables_.size());
  for (std::size_t group = 0; group < tables_.size(); ++group) pages[group] = tables_[group].pages[index];
  return {*cache_, std::move(pages)};
}

bool KvSequence::must_copy_last(std::size_t group) const noexcept {
  if (length_ % kPagePositions == 0) return false;
  return cache_->shared(group, tables_[group].pages[length_ / kPagePositions]);
}

std::size_t KvSequence::new_pages(std::size_t group, std::size_t n, std::size_t chunk) const noexcept {
  const std::size_t window = cache_->layout().groups[group].window;
  const Table& table = tables_[group];
  const std::size_t now = table.pages.size() - table.first_kept;
  std::size_t most = now;
  for (std::size_t done = 0; done < n; done += std::min(chunk, n - done)) {
    const std::size_t begin = std::max(table.first_kept, first_visible_page(window, length_ + done));
    const std::size_t end = ceil_div(length_ + done + std::min(chunk, n - done), kPagePositions);
    if (end > begin) most = std::max(most, end - begin);
  }
  // A shared page that falls behind the window goes on being held by the other sequence.
  std::size_t kept_by_others = 0;
  for (std::size_t i = table.first_kept; i < std::min(table.pages.size(), first_visible_page(window, length_ + n)); ++i) {
    if (cache_->shared(group, table.pages[i])) ++kept_by_others;
  }
  return most - now + kept_by_others + (must_copy_last(group) ? 1 : 0);
}

void KvSequence::reserve(std::size_t positions) {
  for (Table& table : tables_) table.pages.reserve(ceil_div(positions, kPagePositions));
}

std::uint64_t KvSequence::bytes_needed(std::size_t n, std::size_t chunk) const noexcept {
  std::uint64_t needed = 0;
  for (std::size_t group = 0; group < tables_.size(); ++group) needed += new_pages(group, n, chunk) * cache_->layout().page_bytes(group);
  return needed;
}

void KvSequence::check_room(std::size_t n, std::size_t chunk) const {
  const std::size_t context = cache_->context();
  if (n > context || length_ > context - n) {
    throw_bad_request("context: " + std::to_string(length_) + " positions are used and " + std::to_string(n) +
                      " more asked for, together " + std::to_string(length_ + n) + ", but the context holds " + std::to_string(context));
  }
  const std::uint64_t needed = bytes_needed(n, chunk);
  const std::uint64_t free = cache_->free_bytes();
  if (needed <= free) return;

  const std::string message = "kv cache: " + std::to_string(n) + " positions after " + std::to_string(length_) + " take " +
                              mebibytes(needed) + " (" + std::to_string(needed) + " bytes), but " + mebibytes(free) + " (" +
                              std::to_string(free) + " bytes) of the budget of " + mebibytes(cache_->budget_bytes()) + " are free";
  const bool never = cache_->layout().bytes_for(length_ + n, chunk) > cache_->budget_bytes();
  throw Error(never ? ErrorKind::kBadRequest : ErrorKind::kOutOfMemory, message);
}

void KvSequence::prepare(std::size_t n) {
  check_room(n, std::max<std::size_t>(n, 1));
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    auto& pages = tables_[group].pages;
    if (n != 0 && must_copy_last(group)) {
      PageId& last = pages[length_ / kPagePositions];
      const PageId own = cache_->allocate(group);
      cache_->copy_page(group, last, own);
      cache_->release(group, last);
      last = own;
    }
    const std::size_t wanted = ceil_div(length_ + n, kPagePositions);
    if (wanted > pages.capacity()) pages.reserve(std::max(wanted, 2 * pages.capacity()));
    while (pages.size() < wanted) pages.push_back(cache_->allocate(group));
  }
}

void KvSequence::advance(std::size_t n) {
  length_ += n;
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    Table& table = tables_[group];
    const std::size_t visible = first_visible_page(cache_->layout().groups[group].window, length_);
    for (; table.first_kept < std::min(visible, table.pages.size()); ++table.first_kept) {
      cache_->release(group, std::exchange(table.pages[table.first_kept], kNoPage));
    }
  }
}

std::size_t KvSequence::earliest_truncation() const noexcept {
  std::size_t earliest = 0;
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    const std::size_t first_kept = tables_[group].first_kept;
    if (first_kept == 0) continue;
    // A step at n reads from n - window + 1 on.
    earliest = std::max(earliest, first_kept * kPagePositions + cache_->layout().groups[group].window - 1);
  }
  return std::min(earliest, length_);
}

void KvSequence::truncate(std::size_t n) {
  if (n > length_) {
    throw_bad_request("kv cache: cannot truncate to " + std::to_string(n) + " positions, the sequence holds " + std::to_string(length_));
  }
  if (n == 0) {
    const std::size_t groups = tables_.size();
    release_all();
    tables_.resize(groups);
    return;
  }
  if (n < earliest_truncation()) {
    throw_bad_request("kv cache: cannot truncate to " + std::to_string(n) + " positions, the sliding window keeps what a length of " +
                      std::to_string(earliest_truncation()) + " or more needs; truncate to 0 and start over");
  }
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    auto& pages = tables_[group].pages;
    while (pages.size() > ceil_div(n, kPagePositions)) {
      if (pages.back() != kNoPage) cache_->release(group, pages.back());
      pages.pop_back();
    }
  }
  length_ = n;
}

}  // namespace quench
