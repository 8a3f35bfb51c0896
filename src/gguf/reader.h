#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "gguf/directory.h"
#include "gguf/metadata.h"

namespace quench::gguf {

struct SplitName;

/// An opened model: one file, or all parts of a split one found from any part. Tensors are in file order, part after part; the
/// metadata is the first part's.
class Reader {
 public:
  /// Throws Error(kBadFile) or Error(kUnsupported) naming the file at fault, and as File does.
  explicit Reader(const std::filesystem::path& path);

  [[nodiscard]] const Metadata& metadata() const noexcept { return directory_.metadata; }
  [[nodiscard]] std::uint32_t version() const noexcept { return directory_.version; }
  [[nodiscard]] std::uint64_t alignment() const noexcept { return directory_.alignment; }
  /// Of the first part; what a Writer needs to make the same bytes again.
  [[nodiscard]] bool padded_end() const noexcept { return directory_.padded_end; }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept { return directory_.tensors; }
  [[nodiscard]] const TensorInfo* find(std::string_view name) const;
  /// Throws Error(kBadFile) naming the missing tensor.
  [[nodiscard]] const TensorInfo& tensor(std::string_view name) const;
  [[nodiscard]] std::span<const File> parts() const noexcept { return parts_; }
  [[nodiscard]] std::size_t part_count() const noexcept { return parts_.size(); }
  [[nodiscard]] std::uint64_t total_file_bytes() const noexcept;
  /// The path that was asked for, whichever part it is.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Reads `out.size()` bytes of the tensor's data from `offset` within it; thread-safe. Throws Error(kBadRequest) past its end.
  void read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const;
  /// Tells the system that the tensor's pages will not be read again. A hint; never fails.
  void drop_cache(const TensorInfo& tensor) const noexcept;

 private:
  void open_parts(const SplitName& name);
  void add_part(const std::filesystem::path& path, std::size_t part, std::size_t n_parts);
  void index_tensors();

  std::filesystem::path path_;
  Directory directory_;
  std::vector<File> parts_;
  TextIndex index_;
};

}  // namespace quench::gguf
