#include "engine/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace quench {
namespace {

std::size_t common_prefix(std::span<const Token> a, std::span<const Token> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

PrefixCache::Step PrefixCache::best_child(const Node& node, std::span<const Token> tokens) {
  Step best{.node = nullptr, .common = 0};
  for (const auto& child : node.children) {
    const std::size_t common = common_prefix(child->tokens, tokens);
    if (common > best.common) best = {.node = child.get(), .common = common};
  }
  return best;
}

std::vector<PrefixCache::Step> PrefixCache::walk(const Node& root, std::span<const Token> tokens) const {
  std::vector<Step> steps;
  const Node* node = &root;
  while (!tokens.empty()) {
    const Step step = best_child(*node, tokens);
    if (step.node == nullptr) break;
    steps.push_back(step);
    if (step.common < kPagePositions) break;
    tokens = tokens.subspan(kPagePositions);
    node = step.node;
  }
  return steps;
}

std::size_t PrefixCache::usable_length(std::span<const Step> steps) const {
  if (steps.empty()) return 0;
  std::size_t length = (steps.size() - 1) * kPagePositions + steps.back().common;
  const auto& groups = cache_.layout().groups;
  const auto first_missing = [&](std::size_t group) {
    const std::size_t end = ceil_div(length, kPagePositions);
    std::size_t page = first_visible_page(groups[group].window, length);
    while (page < end && steps[page].node->share.has(group)) ++page;
    return page * kPagePositions;
  };
  // Ending at a missing page moves the window back, where other pages may be missing.
  for (bool changed = true; changed && length > 0;) {
    changed = false;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const std::size_t missing = first_missing(group);
      if (missing >= length) continue;
      length = missing;
      changed = true;
    }
  }
  return length;
}

std::size_t PrefixCache::match_length(std::span<const Token> tokens, std::uint64_t adapter) const {
  const auto root = roots_.find(adapter);
  return root == roots_.end() ? 0 : usable_length(walk(root->second, tokens));
}

KvSequence PrefixCache::find(std::span<const Token> tokens, std::uint64_t adapter) {
  auto steps = walk(roots_[adapter], tokens);
  const std::size_t length = usable_length(steps);
  if (length == 0) return KvSequence(cache_);
  steps.resize(ceil_div(length, kPagePositions));
  touch(steps, length);
  std::vector<const KvPageShare*> shares;
  for (const Step& step : steps) shares.push_back(&step.node->share);
  return {cache_, shares, length};
}

/// Leaves end up older than the nodes above them.
void PrefixCache::touch(std::span<const Step> steps, std::size_t length) {
  ++tick_;
  std::size_t first_window = steps.size();
  for (const KvGroup& group : cache_.layout().groups) {
    if (group.window != 0) first_window = std::min(first_window, first_visible_page(group.window, length));
  }
  for (std::size_t i = steps.size(); i-- > 0;) {
    Node& node = *steps[i].node;
    node.used = tick_;
    by_use_.splice(by_use_.begin(), by_use_, node.place);
    if (i < first_window) continue;
    node.window_used = tick_;
    by_window_use_.splice(by_window_use_.begin(), by_window_use_, node.window_place);
  }
}

PrefixCache::Step PrefixCache::put(Node& parent, std::span<const Token> tokens, KvPageShare share) {
  const Step step = best_child(parent, tokens);
  if (step.node == nullptr || step.common < std::min(tokens.size(), step.node->tokens.size())) {
    return {.node = &add_child(parent, tokens, std::move(share)), .common = tokens.size()};
  }
  if (step.node->tokens.size() < tokens.size()) {
    step.node->tokens.assign(tokens.begin(), tokens.end());
    step.node->share = std::move(share);
    return {.node = step.node, .common = tokens.size()};
  }
  if (step.node->tokens.size() == tokens.size()) step.node->share.fill_from(std::move(share));
  return step;
}

PrefixCache::Node& PrefixCache::add_child(Node& parent, std::span<const Token> tokens, KvPageShare share) {
  auto child = std::make_unique<Node>();
  child->parent = &parent;
  child->tokens.assign(tokens.begin(), tokens.end());
  child->share = std::move(share);
  parent.children.push_back(std::move(child));
  Node& node = *parent.children.back();
  by_use_.push_front(&node);
  node.place = by_use_.begin();
  by_window_use_.push_front(&node);
  node.window_place = by_window_use_.begin();
  return node;
}

void PrefixCache::insert(std::span<const Token> tokens, const KvSequence& sequence, bool partial, std::uint64_t adapter) {
  tokens = tokens.first(std::min(tokens.size(), sequence.length()));
  const std::size_t kept = partial ? tokens.size() : tokens.size() / kPagePositions * kPagePositions;
  std::vector<Step> steps;
  Node* node = &roots_[adapter];
  for (std::size_t begin = 0; begin < kept; begin += kPagePositions) {
    const auto page_tokens = tokens.subspan(begin, std::min(kPagePositions, kept - begin));
    steps.push_back(put(*node, page_tokens, sequence.share(begin / kPagePositions)));
    node = steps.back().node;
  }
  if (!steps.empty()) touch(steps, kept);
}

std::vector<PrefixPage> PrefixCache::pages() const {
  struct Pending {
    const Node* node;
    std::size_t parent;
  };
  std::vector<PrefixPage> pages;
  for (const auto& [adapter, root] : roots_) {
    std::vector<Pending> pending;
    const auto add_children = [&pending](const Node& node, std::size_t parent) {
      const auto first = static_cast<std::ptrdiff_t>(pending.size());
      for (const auto& child : node.children) pending.push_back({child.get(), parent});
      // The last one comes first.
      std::sort(pending.begin() + first, pending.end(), [](const Pending& a, const Pending& b) { return a.node->used > b.node->used; });
    };
    add_children(root, PrefixPage::kNoParent);
    while (!pending.empty()) {
      const auto [node, parent] = pending.back();
      pending.pop_back();
      pages.push_back({.adapter = adapter, .parent = parent, .tokens = node->tokens, .share = &node->share});
      add_children(*node, pages.size() - 1);
    }
  }
  return pages;
}

void PrefixCache::restore(std::vector<RestoredPrefixPage> pages) {
  std::vector<Node*> nodes;
  std::vector<bool> ends_branch(pages.size(), true);
  for (RestoredPrefixPage& page : pages) {
    const bool top = page.parent == PrefixPage::kNoParent;
    if (!top) ends_branch[page.parent] = false;
    nodes.push_back(put(top ? roots_[page.adapter] : *nodes[page.parent], page.tokens, std::move(page.share)).node);
  }
  // As if each branch had been asked for in turn.
  std::vector<Step> steps;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (!ends_branch[i]) continue;
    steps.clear();
    for (Node* node = nodes[i]; node->parent != nullptr; node = node->parent)
      steps.push_back({.node = node, .common = node->tokens.size()});
    std::ranges::reverse(steps);
    touch(steps, (steps.size() - 1) * kPagePositions + steps.back().common);
  }
}

bool PrefixCache::has_window_pages(const Node& node) const {
  const auto& groups = cache_.layout().groups;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].window != 0 && node.share.has(group) && !node.share.used_elsewhere(group)) return true;
  }
  return false;
}

PrefixCache::Node* PrefixCache::oldest_idle_leaf() const {
  const auto found = std::find_if(by_use_.rbegin(), by_use_.rend(),
                                  [](const Node* node) { return node->children.empty() && !node->share.used_elsewhere(); });
  return found == by_use_.rend() ? nullptr : *found;
}

PrefixCache::Node* PrefixCache::oldest_idle_window() const {
  const auto found =
      std::find_if(by_window_use_.rbegin(), by_window_use_.rend(), [this](const Node* node) { return has_window_pages(*node); });
  return found == by_window_use_.rend() ? nullptr : *found;
}

void PrefixCache::remove(Node& leaf) {
  by_use_.erase(leaf.place);
  by_window_use_.erase(leaf.window_place);
  auto& siblings = leaf.parent->children;
  const auto place = std::ranges::find_if(siblings, [&](const auto& child) { return child.get() == &leaf; });
  std::swap(*place, siblings.back());
  siblings.pop_back();
}

bool PrefixCache::remove_oldest() {
  Node* leaf = oldest_idle_leaf();
  Node* window = oldest_idle_window();
  if (leaf == nullptr && window == nullptr) return false;
  pages_given_up_ += 1;
  // A leaf's windowed pages go with it.
  if (leaf != nullptr && (window == nullptr || window == leaf || leaf->used < window->window_used)) {
    remove(*leaf);
    return true;
  }
  const auto& groups = cache_.layout().groups;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].window != 0 && !window->share.used_elsewhere(group)) window->share.drop(group);
  }
  return true;
}

KvSequence PrefixCache::scratch_sequence(std::size_t n_tokens, std::size_t chunk) {
  KvSequence sequence(cache_);
  const std::uint64_t needed = sequence.bytes_needed(n_tokens, chunk);
  // Nobody's pages leave for tokens that do not fit even so.
  if (n_tokens <= cache_.context() && needed <= cache_.free_bytes() + stats().idle_bytes) make_room(needed);
  sequence.check_room(n_tokens, chunk);
  return sequence;
}

bool PrefixCache::make_room(std::uint64_t bytes) {
  while (cache_.free_bytes() < bytes) {
    if (!remove_oldest()) return false;
  }
  return true;
}

void PrefixCache::clear() {
  while (remove_oldest()) {
  }
}

void PrefixCache::forget_all() noexcept {
  pages_given_up_ += by_use_.size();
  by_use_.clear();
  by_window_use_.clear();
  roots_.clear();
}

PrefixCacheStats PrefixCache::stats() const {
  PrefixCacheStats stats;
  stats.pages_given_up = pages_given_up_;
  const auto& layout = cache_.layout();
  stats.pages = by_use_.size();
  for (const Node* node : by_use_) {
    stats.positions += node->tokens.size();
    for (std::size_t group = 0; group < layout.groups.size(); ++group) {
      if (node->share.has(group) && !node->share.used_elsewhere(group)) stats.idle_bytes += layout.page_bytes(group);
    }
  }
  return stats;
}

}  // namespace quench
