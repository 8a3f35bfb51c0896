#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned.h"
#include "base/thread_pool.h"

namespace quench {

/// How fast this machine reads memory: a buffer far larger than the caches, on the kind of pages that weights lie on, read from one end
/// to the other by all threads of a pool. Decoding reads every weight once a token, so this rate bounds it.
class ReadProbe {
 public:
  struct Pass {
    double bytes_per_second;
    std::uint64_t sum;  ///< of all words, modulo 2^64: whoever knows it has read everything
  };

  /// Fills the buffer, rounded down to whole items. Throws Error(kOutOfMemory).
  ReadProbe(std::size_t bytes, ThreadPool& pool);

  [[nodiscard]] Pass read(ThreadPool& pool) const;
  [[nodiscard]] std::size_t size_bytes() const noexcept { return buffer_.size_bytes(); }
  /// What `sum` is when every word was read once.
  [[nodiscard]] std::uint64_t expected_sum() const noexcept;

 private:
  AlignedBuffer buffer_;
};

/// 1 GiB or eight times the last-level cache, whichever is more; at most a quarter of `available_bytes`.
[[nodiscard]] std::size_t read_probe_bytes(std::uint64_t last_level_cache_bytes, std::uint64_t available_bytes) noexcept;

}  // namespace quench
