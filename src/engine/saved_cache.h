#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/append_file.h"
#include "base/token.h"
#include "engine/prefix_cache.h"
#include "model/kv_cache.h"

namespace quench {

/// Whose keys and values a saved cache holds. Those of another owner must never be found.
struct SavedCacheOwner {
  /// hash_model (engine/file_hash.h): of the model's files and of every setting that changes keys or values.
  std::array<std::uint64_t, 2> model_hash{};
  KvLayout layout;
  std::size_t n_vocab = 0;
};

/// A prefix cache on disk, so that a program starts with what an earlier one has computed.
///
/// The file is a log: a header that names the owner and the version of the numeric contract, then a record for each page of 64 positions
/// with its tokens, the record of the page before it, and a checksum. Saving appends what the file lacks, so a program that is killed in
/// the middle loses at most what it was saving. A file of another owner or version, or with a wrong byte anywhere, is refused; a torn last
/// record is cut off. The file is written with access for its owner alone: its tokens are what users wrote.
///
/// One thread at a time, one program at a time.
class SavedCache {
 public:
  /// Opens or makes the file and reads its records, not their pages. Throws Error(kBadFile) naming the path and what does not match,
  /// as AppendFile does, and Error(kUnsupported) for a layout of more than 64 groups.
  /// limit_bytes  the file's size: a save that would pass it starts the file anew with what is resident then and fits
  SavedCache(const std::filesystem::path& path, SavedCacheOwner owner, std::uint64_t limit_bytes);

  /// Puts into `prefix` the pages for which its cache has room, those saved last first. Gives how many positions. Throws Error(kBadFile)
  /// naming the path and the offset of a page whose checksum is wrong; `prefix` is then as it was.
  std::size_t restore(PrefixCache& prefix) const;
  /// Appends what `prefix` holds and the file does not. Gives how many positions. When it throws (Error(kIo)) the file holds what it held.
  std::size_t save(const PrefixCache& prefix);

  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return end_; }
  /// Positions that the file holds.
  [[nodiscard]] std::size_t positions() const noexcept;

 private:
  /// A page of 64 positions in every group that has one.
  struct Node {
    std::size_t parent = PrefixPage::kNoParent;
    std::uint64_t adapter = 0;
    std::vector<Token> tokens;
    std::vector<std::uint64_t> offsets;  ///< by group, of the page in the file; 0 = none
    std::vector<std::size_t> children;
    std::size_t depth = 1;  ///< pages up to its end
  };
  struct RecordHeader;
  struct FileHeader;

  [[nodiscard]] FileHeader header() const;
  void read_header();
  void read_records();
  void check(const RecordHeader& record, std::uint64_t offset) const;
  /// Makes the node of a record, or adds the record's pages to it.
  void apply(const RecordHeader& record, std::uint64_t offset);
  [[nodiscard]] std::uint64_t record_bytes(std::uint64_t groups) const noexcept;
  [[nodiscard]] std::uint64_t stored_bytes(const Node& node) const noexcept;
  [[nodiscard]] std::uint64_t groups_of(const PrefixPage& page) const noexcept;
  /// The record that `page` needs: its node, and the groups that the file lacks of it.
  [[nodiscard]] RecordHeader record_for(const PrefixPage& page, std::size_t parent) const;
  void append(const RecordHeader& record, const KvPageShare& share);
  /// What a save has to do.
  struct Missing {
    std::vector<bool> pages;  ///< by page: the file lacks something of it
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Missing missing(std::span<const PrefixPage> pages) const;
  /// Appends what the file lacks of the pages that are `wanted`.
  std::size_t append(std::span<const PrefixPage> pages, const std::vector<bool>& wanted);
  std::size_t start_anew(std::span<const PrefixPage> pages, const std::vector<bool>& wanted);
  [[noreturn]] void refuse(const std::string& why) const;

  SavedCacheOwner owner_;
  std::uint64_t limit_bytes_;
  std::unique_ptr<AppendFile> file_;
  std::uint64_t end_ = 0;  ///< of the last whole record
  std::vector<Node> nodes_;
  std::map<std::uint64_t, std::vector<std::size_t>> roots_;  ///< by adapter, nodes without a parent
};

}  // namespace quench
