#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/token.h"
#include "model/kv_page_share.h"
#include "model/kv_sequence.h"

namespace quench {

/// What a PrefixCache holds.
struct PrefixCacheStats {
  std::size_t pages = 0;             ///< positions are kept 64 to a page, windowed and other layers counted as one
  std::size_t positions = 0;         ///< with keys and values for a token each
  std::uint64_t idle_bytes = 0;      ///< of pages that no sequence uses: make_room gives these up
  std::uint64_t pages_given_up = 0;  ///< since the start
};

/// A node of a PrefixCache, for saving: 64 positions, or fewer at the end of a branch.
struct PrefixPage {
  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

  std::uint64_t adapter = 0;
  std::size_t parent =
      kNoParent;  ///< its number among the pages given with it, all of whose positions come before these; lower than its own
  std::span<const Token> tokens;
  const KvPageShare* share = nullptr;
};

/// The same, for restoring.
struct RestoredPrefixPage {
  std::uint64_t adapter = 0;
  std::size_t parent = PrefixPage::kNoParent;
  std::vector<Token> tokens;
  KvPageShare share;
};

/// Finished positions by the tokens that led to them: a radix tree whose nodes are pages of 64 positions, so that a request starts from the
/// longest prefix that anything resident has computed. Full pages are shared as they are; a partial one is copied by the sequence that
/// appends to it. Because logits depend on the tokens alone, a hit gives the bits that computing anew would give.
///
/// Pages that sequences use never leave. The others go least recently used first, leaves before the nodes above them; a windowed layer's
/// pages may go before the rest of their node, which then no longer serves as the end of a prefix.
///
/// Memory: pages count against the KvCache's budget; a node itself takes about 500 bytes. One thread at a time.
class PrefixCache {
 public:
  explicit PrefixCache(KvCache& cache) : cache_(cache) {}
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  /// A sequence of the longest resident prefix of `tokens`; of length 0 when there is none.
  /// adapter: prefixes of different adapters share nothing
  [[nodiscard]] KvSequence find(std::span<const Token> tokens, std::uint64_t adapter = 0);
  /// How long a prefix `find` would give; changes nothing.
  [[nodiscard]] std::size_t match_length(std::span<const Token> tokens, std::uint64_t adapter = 0) const;
  /// Keeps what `sequence` holds of `tokens`, its tokens in order; at most `n_positions`. A partial last page is kept only when `partial`:
  /// the sequence must copy it to go on.
  void insert(std::span<const Token> tokens, const KvSequence& sequence, bool partial, std::uint64_t adapter = 0);

  /// All nodes, each behind the one above it, the least recently used branches first. Valid until the next change.
  [[nodiscard]] std::vector<PrefixPage> pages() const;
  /// Puts in pages that were saved, in the order of pages(). Their contents are what the model computes for the tokens: who calls has
  /// checked.
  void restore(std::vector<RestoredPrefixPage> pages);
  [[nodiscard]] KvCache& cache() const noexcept { return cache_; }

  /// An empty sequence for so many tokens, computed `chunk` at a time and then forgotten; idle pages make room for it. Throws
  /// Error(kBadRequest) for more than the context, Error(kOutOfMemory) when running answers hold the pages.
  [[nodiscard]] KvSequence scratch_sequence(std::size_t n_tokens, std::size_t chunk);

  /// Gives up idle pages until the cache has `bytes` free; whether it has. Those that do not help stay.
  bool make_room(std::uint64_t bytes);
  /// Gives up everything that no sequence uses.
  void clear();
  /// Forgets the pages that sequences use, too: they keep them for themselves alone.
  void forget_all() noexcept;

  [[nodiscard]] PrefixCacheStats stats() const;

 private:
  struct Node {
    Node* parent = nullptr;
    std::vector<Token> tokens;  ///< 64, fewer in a leaf
    KvPageShare share;
    std::vector<std::unique_ptr<Node>> children;
    std::uint64_t used = 0;         ///< tick of the last lookup or insertion that passed it
    std::uint64_t window_used = 0;  ///< of the last one that needed its windowed pages
    std::list<Node*>::iterator place;
    std::list<Node*>::iterator window_place;
  };
  struct Step {
    Node* node;
    std::size_t common;  ///< tokens of the node that match
  };

  [[nodiscard]] std::vector<Step> walk(const Node& root, std::span<const Token> tokens) const;
  /// The longest length up to the steps' end at which every windowed layer has what it reads.
  [[nodiscard]] std::size_t usable_length(std::span<const Step> steps) const;
  /// The child that shares most of `tokens`, and how many.
  [[nodiscard]] static Step best_child(const Node& node, std::span<const Token> tokens);
  /// What `share` holds of `tokens`, at most 64, below `parent`; a node that held the start of them is extended.
  Step put(Node& parent, std::span<const Token> tokens, KvPageShare share);
  Node& add_child(Node& parent, std::span<const Token> tokens, KvPageShare share);
  void touch(std::span<const Step> steps, std::size_t length);
  [[nodiscard]] bool has_window_pages(const Node& node) const;
  [[nodiscard]] bool remove_oldest();
  [[nodiscard]] Node* oldest_idle_leaf() const;
  [[nodiscard]] Node* oldest_idle_window() const;
  void remove(Node& leaf);

  KvCache& cache_;
  std::map<std::uint64_t, Node> roots_;  ///< by adapter; they hold no tokens
  std::list<Node*> by_use_;              ///< most recent first
  std::list<Node*> by_window_use_;       ///< the same nodes
  std::uint64_t tick_ = 0;
  std::uint64_t pages_given_up_ = 0;
};

}  // namespace quench
