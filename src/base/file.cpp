#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace quench {
namespace {

constexpr std::size_t kWriteBufferBytes = std::size_t{1} << 20;

std::string system_error() { return std::strerror(errno); }

/// Closed at the end of its scope.
struct Descriptor {
  explicit Descriptor(int opened) noexcept : number(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  const int number;
};

struct OpenedFile {
  int descriptor;
  std::uint64_t size_bytes;
};

const char* kind_of_file(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a fifo";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

OpenedFile open_regular(const std::filesystem::path& path) {
  // Without O_NONBLOCK, a fifo would wait for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) throw_io(path.string() + ": cannot open: " + system_error());
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) {
    const std::string reason = system_error();
    ::close(descriptor);
    throw_io(path.string() + ": cannot stat: " + reason);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw_bad_file(path.string() + ": is " + kind_of_file(status.st_mode) + ", not a regular file");
  }
  return {descriptor, static_cast<std::uint64_t>(status.st_size)};
}

void write_fully(int descriptor, std::span<const std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_io(name + ": cannot write: " + system_error());
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

/// Where writing to `path` ends: symbolic links followed, also one that leads to no file yet. A loop of links stays as it is, for the
/// system to refuse.
std::filesystem::path followed(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as Linux
  std::error_code problem;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, problem); ++i) {
    const std::filesystem::path link = std::filesystem::read_symlink(path, problem);
    if (problem) break;
    path = path.parent_path() / link;
  }
  return path;
}

// The one thing here that the whole process shares: a signal handler sees no objects. More writers than slots still work, but an
// interrupt leaves their files.
constexpr std::size_t kUnfinishedSlots = 8;
std::array<std::atomic<const char*>, kUnfinishedSlots> unfinished_files{};
static_assert(std::atomic<const char*>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

/// `path` stays in place until forget_unfinished.
void note_unfinished(const char* path) noexcept {
  for (auto& slot : unfinished_files) {
    const char* empty = nullptr;
    if (slot.compare_exchange_strong(empty, path)) return;
  }
}

void forget_unfinished(const char* path) noexcept {
  for (auto& slot : unfinished_files) {
    const char* expected = path;
    if (slot.compare_exchange_strong(expected, nullptr)) return;
  }
}

}  // namespace

void remove_unfinished_files() noexcept {
  for (auto& slot : unfinished_files) {
    if (const char* path = slot.exchange(nullptr); path != nullptr) ::unlink(path);
  }
}

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

FileWriter::FileWriter(const std::filesystem::path& path) : name_(path.string()), target_(followed(path)) {
  buffer_.reserve(kWriteBufferBytes);
  if (path == "-") {
    name_ = "standard output";
    if (::isatty(STDOUT_FILENO) == 1) throw_bad_request("-: standard output is a terminal; send it into a file or a pipe");
    descriptor_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (descriptor_ < 0) throw_io(name_ + ": cannot write: " + system_error());
    return;
  }
  struct stat status{};
  if (::stat(target_.c_str(), &status) != 0) {
    if (errno != ENOENT) throw_io(name_ + ": cannot create: " + system_error());
    open_beside(std::nullopt);
    return;
  }
  // Opening it says what the system allows: a directory, a read-only file and a program that runs are refused here.
  open_in_place(O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (!S_ISREG(status.st_mode)) return;
  ::close(std::exchange(descriptor_, -1));
  open_beside(status.st_mode & 07777u);
}

void FileWriter::open_in_place(int flags) {
  descriptor_ = ::open(target_.c_str(), flags);
  if (descriptor_ < 0) throw_io(name_ + ": cannot write: " + system_error());
}

void FileWriter::open_beside(std::optional<unsigned> permissions) {
  temporary_ = target_;
  temporary_ += ".partial-" + std::to_string(::getpid());
  note_unfinished(temporary_.c_str());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) {
    const std::string reason = system_error();
    forget_unfinished(temporary_.c_str());
    throw_io(name_ + ": cannot create: " + reason);
  }
  // A file system without permissions refuses; the file is none the worse for it.
  if (permissions) (void)!::fchmod(descriptor_, *permissions);
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  forget_unfinished(temporary_.c_str());
}

void FileWriter::flush() {
  write_fully(descriptor_, std::as_bytes(std::span(buffer_)), name_);
  buffer_.clear();
}

void FileWriter::write(std::span<const std::byte> bytes) {
  written_bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > kWriteBufferBytes) flush();
  if (bytes.size() >= kWriteBufferBytes) {
    write_fully(descriptor_, bytes, name_);
    return;
  }
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void FileWriter::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void FileWriter::commit() {
  flush();
  // A fifo and most devices have nothing to sync, and say EINVAL.
  if (::fsync(descriptor_) != 0 && (!temporary_.empty() || (errno != EINVAL && errno != ENOTSUP && errno != EROFS))) {
    throw_io(name_ + ": cannot sync: " + system_error());
  }
  if (temporary_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) throw_io(name_ + ": cannot write: " + system_error());
    return;
  }
  struct stat status{};
  if (::lstat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw_io(name_ + ": became something else than a regular file while it was written");
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) throw_io(name_ + ": cannot rename into place: " + system_error());
  forget_unfinished(temporary_.c_str());
  ::close(std::exchange(descriptor_, -1));
}

std::string read_text(const std::string& path_or_dash, std::uint64_t limit_bytes) {
  const bool standard_input = path_or_dash == "-";
  const std::string name = standard_input ? "standard input" : path_or_dash;
  const Descriptor input{standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : ::open(path_or_dash.c_str(), O_RDONLY | O_CLOEXEC)};
  if (input.number < 0) throw_io(name + ": cannot open: " + system_error());
  struct stat status{};
  if (::fstat(input.number, &status) == 0 && S_ISDIR(status.st_mode)) throw_bad_file(name + ": is a directory");
  std::string text;
  std::array<char, 65536> chunk{};
  for (;;) {
    const ssize_t n = ::read(input.number, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_io(name + ": cannot read: " + system_error());
    if (n == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(n));
    if (text.size() > limit_bytes) throw_bad_request(name + ": larger than the limit of " + std::to_string(limit_bytes) + " bytes");
  }
}

}  // namespace quench
