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

}  // namespace

AppendFile::AppendFile(const std::filesystem::path& path) : path_(path) {
  std::error_code problem;
  const auto kind = std::filesystem::status(path, problem).type();
  if (kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::regular) {
    throw_bad_file(path.string() + ": is no regular file, and only such a one can be added to");
  }
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path, "open");
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    if (reason == EWOULDBLOCK) throw_bad_request(path.string() + ": another program is writing to it");
    errno = reason;
    fail(path, "lock");
  }
}

AppendFile::~AppendFile() { ::close(descriptor_); }

std::string AppendFile::contents() const {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) fail(path_, "stat");
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, "read");
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  text.resize(done);
  return text;
}

void AppendFile::truncate(std::uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail(path_, "shorten");
}

void AppendFile::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(path_, "write");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fdatasync(descriptor_) != 0) fail(path_, "sync");
}

}  // namespace quench
