#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace quench {
namespace {

constexpr std::size_t kWriteBufferBytes = std::size_t{1} << 20;

std::string system_error() { return std::strerror(errno); }

struct OpenedFile {
  int descriptor;
  std::uint64_t size_bytes;
};

OpenedFile open_regular(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_io(path.string() + ": cannot open: " + system_error());
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) {
    const std::string reason = system_error();
    ::close(descriptor);
    throw_io(path.string() + ": cannot stat: " + reason);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw_bad_request(path.string() + ": not a regular file");
  }
  return {descriptor, static_cast<std::uint64_t>(status.st_size)};
}

void write_fully(int descriptor, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_io(path.string() + ": cannot write: " + system_error());
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace

File::File(const std::filesystem::path& path) : path_(path) {
  const OpenedFile opened = open_regular(path);
  descriptor_ = opened.descriptor;
  size_bytes_ = opened.size_bytes;
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_bytes_(other.size_bytes_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_io(path_.string() + ": cannot read at offset " + std::to_string(offset) + ": " + system_error());
    if (n == 0) {
      throw_io(path_.string() + ": ends at offset " + std::to_string(offset) + ", " + std::to_string(out.size()) +
               " bytes before what was asked for; was it changed while being read?");
    }
    out = out.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void File::drop_cache(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  (void)::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const OpenedFile opened = open_regular(path);
  size_bytes_ = static_cast<std::size_t>(opened.size_bytes);
  if (size_bytes_ != 0) {
    void* mapped = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_PRIVATE, opened.descriptor, 0);
    const std::string reason = system_error();
    ::close(opened.descriptor);
    if (mapped == MAP_FAILED) throw_io(path.string() + ": cannot map " + std::to_string(size_bytes_) + " bytes: " + reason);
    data_ = static_cast<const std::byte*>(mapped);
  } else {
    ::close(opened.descriptor);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) (void)::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

void MappedFile::release(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = (offset + page - 1) / page * page;
  const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, size_bytes_) / page * page;
  if (begin < end) (void)::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::prefetch(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page;
  const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, size_bytes_);
  if (begin < end) (void)::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_WILLNEED);
}

FileWriter::FileWriter(const std::filesystem::path& path) : path_(path), temporary_(path) {
  temporary_ += ".partial-" + std::to_string(::getpid());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw_io(temporary_.string() + ": cannot create: " + system_error());
  buffer_.reserve(kWriteBufferBytes);
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void FileWriter::flush() {
  write_fully(descriptor_, std::as_bytes(std::span(buffer_)), path_);
  buffer_.clear();
}

void FileWriter::write(std::span<const std::byte> bytes) {
  written_bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > kWriteBufferBytes) flush();
  if (bytes.size() >= kWriteBufferBytes) {
    write_fully(descriptor_, bytes, path_);
    return;
  }
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void FileWriter::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void FileWriter::commit() {
  flush();
  if (::fsync(descriptor_) != 0) throw_io(path_.string() + ": cannot sync: " + system_error());
  ::close(std::exchange(descriptor_, -1));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const std::string reason = system_error();
    ::unlink(temporary_.c_str());
    throw_io(path_.string() + ": cannot rename into place: " + reason);
  }
}

std::string read_text(const std::string& path_or_dash, std::uint64_t limit_bytes) {
  const auto too_large = [&] { throw_bad_request(path_or_dash + ": larger than the limit of " + std::to_string(limit_bytes) + " bytes"); };
  if (path_or_dash != "-") {
    const File file(path_or_dash);
    if (file.size_bytes() > limit_bytes) too_large();
    std::string text(static_cast<std::size_t>(file.size_bytes()), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
  }
  std::string text;
  std::array<char, 65536> chunk{};
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_io("standard input: " + system_error());
    if (n == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(n));
    if (text.size() > limit_bytes) too_large();
  }
}

}  // namespace quench
