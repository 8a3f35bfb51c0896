#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"

namespace quench::gguf {

// Numbers are copied from the file as they lie.
static_assert(std::endian::native == std::endian::little, "quench runs on little-endian machines");

/// The directory of a file (header, metadata, tensor list) may take this much: the largest known, Gemma 4 with 262,144 tokens and their
/// merges, takes 16 MB.
inline constexpr std::uint64_t kMaxDirectoryBytes = std::uint64_t{256} << 20;

/// A name from a file as an error may show it: control characters and zero bytes replaced, a long one cut.
[[nodiscard]] std::string printable(std::string_view name);

/// Reads the little-endian numbers and strings of a directory in order, and never past the end of the file. A file is read in pieces,
/// so that a directory costs its own size and no more.
///
/// Every failure is Error(kBadFile) "<source>: <place>: ...".
class Cursor {
 public:
  /// `prefix` is the start of a file of `file_bytes`.
  Cursor(std::span<const std::byte> prefix, std::uint64_t file_bytes, std::string source);
  /// `file` outlives the cursor.
  Cursor(const File& file, std::string source);
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  /// What is being read, for errors: "metadata key 7".
  void set_place(std::string place) { place_ = std::move(place); }
  [[noreturn]] void fail(const std::string& problem) const;
  [[noreturn]] void fail_unsupported(const std::string& problem) const;

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  [[nodiscard]] std::uint64_t remaining_bytes() const noexcept { return file_bytes_ - position_; }
  [[nodiscard]] const std::string& source() const noexcept { return source_; }

  template <typename T>
    requires std::integral<T> || std::floating_point<T>
  [[nodiscard]] T number() {
    T value{};
    copy(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  /// A length of 64 bits, then as many bytes, at most `limit_bytes`.
  [[nodiscard]] std::string text(std::uint64_t limit_bytes);

  /// `count` numbers. Memory grows as they arrive: a false count costs nothing.
  template <typename T>
  [[nodiscard]] std::vector<T> numbers(std::uint64_t count) {
    require_elements(count, sizeof(T));
    std::vector<T> values;
    while (values.size() < count) {
      const std::size_t begin = values.size();
      values.resize(begin + static_cast<std::size_t>(std::min<std::uint64_t>(count - begin, kPieceBytes / sizeof(T))));
      copy(std::as_writable_bytes(std::span(values).subspan(begin)));
    }
    return values;
  }

  /// Fails when `count` elements of at least `least_bytes` each cannot be in what remains.
  void require_elements(std::uint64_t count, std::uint64_t least_bytes) const;

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

  void copy(std::span<std::byte> out);
  void require(std::uint64_t bytes) const;
  void refill();

  const File* file_ = nullptr;
  std::vector<std::byte> piece_;
  std::span<const std::byte> unread_;  ///< bytes at position_ that are in memory
  std::uint64_t position_ = 0;
  std::uint64_t file_bytes_;
  std::string source_;
  std::string place_ = "header";
};

}  // namespace quench::gguf
