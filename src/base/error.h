#pragma once

#include <stdexcept>
#include <string>

namespace quench {

/// What went wrong, in the terms that decide the exit code and, later, the HTTP status.
enum class ErrorKind {
  kBadFile,      ///< the file is damaged, truncated or contradicts itself
  kUnsupported,  ///< the file or request is valid, but quench does not do it
  kBadRequest,   ///< wrong usage, an impossible request, a context overflow
  kOutOfMemory,  ///< an allocation or a budget is exhausted
  kIo,           ///< the operating system refused a read or write
  kCheckFailed,  ///< a verification ran and found a difference
};

/// The one exception type. The message names the thing at fault and, where there is one, the remedy. Thrown at the boundary of an
/// operation; never from a kernel, never across threads.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

[[noreturn]] inline void throw_bad_file(const std::string& message) { throw Error(ErrorKind::kBadFile, message); }
[[noreturn]] inline void throw_unsupported(const std::string& message) { throw Error(ErrorKind::kUnsupported, message); }
[[noreturn]] inline void throw_bad_request(const std::string& message) { throw Error(ErrorKind::kBadRequest, message); }
[[noreturn]] inline void throw_out_of_memory(const std::string& message) { throw Error(ErrorKind::kOutOfMemory, message); }
[[noreturn]] inline void throw_io(const std::string& message) { throw Error(ErrorKind::kIo, message); }

/// Process exit code for each kind: 1 failed check, 2 usage or bad request, 3 bad or unsupported file, 4 memory or i/o.
[[nodiscard]] constexpr int exit_code(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kCheckFailed: return 1;
    case ErrorKind::kBadRequest: return 2;
    case ErrorKind::kBadFile:
    case ErrorKind::kUnsupported: return 3;
    case ErrorKind::kOutOfMemory:
    case ErrorKind::kIo: return 4;
  }
  return 4;
}

}  // namespace quench
