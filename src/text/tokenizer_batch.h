#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/token.h"
#include "text/tokenizer_cache.h"

namespace quench {

/// Whether a piece is one of the pre-tokenizer's, or a part of it between safe cuts.
enum class PieceKind : std::uint8_t { kWhole, kSegment };

/// Encodes consecutive pieces through the cache, a batch at a time: the look-ups of a batch are under way together, where one after the
/// other would each wait for memory. `merge(piece, kind, out)` appends the ids of a piece that the cache does not hold.
template <typename Merge>
class PieceBatch {
 public:
  PieceBatch(PieceCache& cache, const Merge& merge, std::vector<Token>& out) : cache_(cache), merge_(merge), out_(out) {}
  PieceBatch(const PieceBatch&) = delete;
  PieceBatch& operator=(const PieceBatch&) = delete;

  /// `piece` has 1 to PieceCache::kMaxBytes bytes, `readable` bytes may be read from its start, and it stays in place until flush().
  void add(std::string_view piece, std::size_t readable, PieceKind kind) {
    Pending& next = pending_[count_++];
    const bool whole = kind == PieceKind::kWhole;
    next = {whole ? PieceCache::key_of(piece, readable) : PieceCache::segment_key_of(piece, readable), piece, kind};
    cache_.prefetch(next.key);
    if (count_ == kPieces) flush();
  }

  /// Appends the ids of all that was added.
  void flush() {
    std::array<Token, kPieces * PieceCache::kMaxTokens> ids;
    std::size_t known = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::size_t found = cache_.copy(pending_[i].key, ids.data() + known);
      known += found;
      if (found != 0) continue;
      out_.insert(out_.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(known));
      known = 0;
      const std::size_t old = out_.size();
      merge_(pending_[i].text, pending_[i].kind, out_);
      cache_.insert(pending_[i].key, std::span(out_).subspan(old));
    }
    out_.insert(out_.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(known));
    count_ = 0;
  }

 private:
  // 16 misses under way are about what a core has room for.
  static constexpr std::size_t kPieces = 16;

  struct Pending {
    PieceCache::Key key;
    std::string_view text;
    PieceKind kind = PieceKind::kWhole;
  };

  PieceCache& cache_;
  const Merge& merge_;
  std::vector<Token>& out_;
  std::array<Pending, kPieces> pending_;
  std::size_t count_ = 0;
};

}  // namespace quench
