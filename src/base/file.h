#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace quench {

/// A regular file opened for reading at explicit offsets. Safe to share between threads.
class File {
 public:
  /// Throws Error(kIo) when it cannot be opened, Error(kBadFile) when it is no regular file; both name the path. Never waits for the
  /// writer of a fifo.
  explicit File(const std::filesystem::path& path);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Fills `out` from `offset`. Throws Error(kIo) naming path and offset when the bytes are not all there.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

  /// Tells the kernel that this range will not be read again, so its cached pages may go. A hint; never fails.
  void drop_cache(std::uint64_t offset, std::uint64_t bytes) const noexcept;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_bytes_ = 0;
};

/// A whole file mapped read-only. Throws as File does.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_bytes_}; }

  /// Gives the resident pages wholly inside [offset, offset + bytes) back to the system; they are read again when touched.
  void release(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  /// Asks the kernel to read the range ahead.
  void prefetch(std::uint64_t offset, std::uint64_t bytes) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// Sequential writer.
///
/// A regular file appears under its final name only at commit(): a crash leaves the old one, and an interrupted program removes the
/// unfinished one (remove_unfinished_files). Symbolic links are followed, and a file that is there already keeps its permissions; one
/// that may not be written is refused, as open(2) does. What is no regular file (a device, a fifo) is written straight into, and so is
/// standard output, "-".
class FileWriter {
 public:
  /// Throws Error(kIo) naming the path, Error(kBadRequest) for "-" when standard output is a terminal.
  explicit FileWriter(const std::filesystem::path& path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Flushes, syncs and renames. Without it the temporary file is removed.
  void commit();
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return written_bytes_; }

 private:
  void open_in_place(int flags);
  void open_beside(std::optional<unsigned> permissions);
  void flush();
  std::string name_;                 ///< of messages
  std::filesystem::path target_;     ///< links followed
  std::filesystem::path temporary_;  ///< empty: written in place
  int descriptor_ = -1;
  std::uint64_t written_bytes_ = 0;
  std::string buffer_;
};

/// Removes the temporary files of all writers. Async-signal-safe: for handlers that end the program.
void remove_unfinished_files() noexcept;

/// The bytes of a file, fifo or device, at most `limit_bytes`, or of standard input for "-". Throws Error(kBadRequest) naming the limit
/// when there are more, Error(kBadFile) for a directory, Error(kIo).
[[nodiscard]] std::string read_text(const std::string& path_or_dash, std::uint64_t limit_bytes);

}  // namespace quench
