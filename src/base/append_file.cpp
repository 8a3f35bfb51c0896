#include "base/append_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace quench {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw_io(path.string() + ": cannot " + what + ": " + std::strerror(errno));
}

bool still_at(const std::filesystem::path& path, int descriptor) {
  struct stat opened{};
  struct stat there{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

}  // namespace

AppendFile::AppendFile(const std::filesystem::path& path, unsigned permissions) : path_(path) {
  std::error_code problem;
  const auto kind = std::filesystem::status(path, problem).type();
  if (kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::regular) {
    throw_bad_file(path.string() + ": is no regular file, and only such a one can be added to");
  }
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, permissions);
    if (descriptor_ < 0) fail(path, "open");
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      ::close(descriptor_);
      if (reason == EWOULDBLOCK) throw_bad_request(path.string() + ": another program is writing to it");
      errno = reason;
      fail(path, "lock");
    }
    // Whoever held the lock may have put another file in the place of the one that was opened.
  } while (!still_at(path, descriptor_));
}

AppendFile::~AppendFile() { ::close(descriptor_); }

std::uint64_t AppendFile::size_bytes() const {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) fail(path_, "stat");
  return static_cast<std::uint64_t>(status.st_size);
}

std::string AppendFile::contents() const {
  std::string text(size_bytes(), '\0');
  read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void AppendFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, "read");
    if (n == 0) throw_io(path_.string() + ": became shorter while it was read");
    out = out.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void AppendFile::truncate(std::uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail(path_, "shorten");
}

void AppendFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(path_, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AppendFile::sync() {
  if (::fdatasync(descriptor_) != 0) fail(path_, "sync");
}

void AppendFile::append(std::string_view text) {
  write(std::as_bytes(std::span(text)));
  sync();
}

void AppendFile::rename_to(const std::filesystem::path& path) {
  if (::rename(path_.c_str(), path.c_str()) != 0) fail(path_, "rename");
  path_ = path;
}

}  // namespace quench
