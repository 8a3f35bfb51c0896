#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace quench {

/// A file that only grows: a crash loses at most the piece that is being written. One program at a time: the file is locked while it is
/// open.
class AppendFile {
 public:
  /// Opens or makes it. Throws Error(kIo) naming the path, Error(kBadFile) when it is no regular file, Error(kBadRequest) when another
  /// program holds it.
  /// permissions  of a new file, less the umask
  explicit AppendFile(const std::filesystem::path& path, unsigned permissions = 0666);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size_bytes() const;
  /// What it holds. Throws Error(kIo), Error(kOutOfMemory).
  [[nodiscard]] std::string contents() const;
  /// Fills `out` from `offset`. Throws Error(kIo) when the bytes are not all there.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

  /// Cuts off what lies behind the first `bytes`.
  void truncate(std::uint64_t bytes);
  void write(std::span<const std::byte> bytes);
  /// What was written is on the disk when this returns.
  void sync();
  /// Writes and syncs.
  void append(std::string_view text);
  /// Moves the file to `path`, in place of what is there: after a crash one of the two is there, whole.
  void rename_to(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace quench
