#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace quench {

/// A text file that grows by whole pieces, each on the disk before `append` returns: a crash loses at most the piece that is being written.
/// One program at a time: the file is locked while it is open.
class AppendFile {
 public:
  /// Opens or makes it. Throws Error(kIo) naming the path, Error(kBadFile) when it is no regular file, Error(kBadRequest) when another
  /// program holds it.
  explicit AppendFile(const std::filesystem::path& path);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  /// What it holds. Throws Error(kIo), Error(kOutOfMemory).
  [[nodiscard]] std::string contents() const;
  /// Cuts off what lies behind the first `bytes`.
  void truncate(std::uint64_t bytes);
  void append(std::string_view text);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace quench
