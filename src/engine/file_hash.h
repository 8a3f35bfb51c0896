#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/file.h"
#include "base/thread_pool.h"

namespace quench {

/// What changes keys and values beside the model's files.
struct KvSettings {
  std::size_t window = 0;
  float expert_top_p = 1.0f;
};

/// 128 bits that stand for the contents of the files, in order. Reads them whole, on all threads. Throws as File::read_at does.
[[nodiscard]] std::array<std::uint64_t, 2> hash_files(std::span<const File> files, ThreadPool& pool);
/// For a SavedCacheOwner.
[[nodiscard]] std::array<std::uint64_t, 2> hash_model(std::span<const File> files, const KvSettings& settings, ThreadPool& pool);

}  // namespace quench
