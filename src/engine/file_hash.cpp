#include "engine/file_hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <string>
#include <vector>

namespace quench {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;

}  // namespace

std::array<std::uint64_t, 2> hash_files(std::span<const File> files, ThreadPool& pool) {
  struct Piece {
    const File* file;
    std::uint64_t offset;
    XXH128_hash_t hash;
  };
  std::vector<Piece> pieces;
  for (const File& file : files) {
    // An empty file and the ends of files count, too.
    for (std::uint64_t offset = 0; offset <= file.size_bytes(); offset += kPieceBytes) pieces.push_back({&file, offset, {}});
  }
  std::vector<std::vector<std::byte>> buffers(static_cast<std::size_t>(pool.thread_count()), std::vector<std::byte>(kPieceBytes));
  std::exception_ptr problem;
  std::atomic_flag failed;
  pool.run(pieces.size(), [&](std::size_t index, int worker) noexcept {
    Piece& piece = pieces[index];
    try {
      const std::uint64_t n = std::min(kPieceBytes, piece.file->size_bytes() - piece.offset);
      const auto bytes = std::span(buffers[static_cast<std::size_t>(worker)]).first(n);
      piece.file->read_at(piece.offset, bytes);
      piece.hash = XXH3_128bits(bytes.data(), bytes.size());
    } catch (...) {
      if (!failed.test_and_set()) problem = std::current_exception();
    }
  });
  if (problem) std::rethrow_exception(problem);
  std::vector<XXH128_hash_t> hashes;
  for (const Piece& piece : pieces) hashes.push_back(piece.hash);
  const XXH128_hash_t whole = XXH3_128bits(hashes.data(), hashes.size() * sizeof(XXH128_hash_t));
  return {whole.low64, whole.high64};
}

std::array<std::uint64_t, 2> hash_model(std::span<const File> files, const KvSettings& settings, ThreadPool& pool) {
  auto hash = hash_files(files, pool);
  const std::string text = fmt::format("window {} experts {}", settings.window, settings.expert_top_p);
  hash[0] ^= XXH3_64bits(text.data(), text.size());
  return hash;
}

}  // namespace quench
