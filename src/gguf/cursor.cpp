#include "gguf/cursor.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace quench::gguf {

std::string printable(std::string_view name) {
  constexpr std::size_t kShownBytes = 100;
  std::string shown(name.substr(0, kShownBytes));
  std::ranges::replace_if(shown, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, '?');
  return name.size() > kShownBytes ? shown + "..." : shown;
}

Cursor::Cursor(std::span<const std::byte> prefix, std::uint64_t file_bytes, std::string source)
    : unread_(prefix.first(static_cast<std::size_t>(std::min<std::uint64_t>(prefix.size(), file_bytes)))),
      file_bytes_(file_bytes),
      source_(std::move(source)) {}

Cursor::Cursor(const File& file, std::string source) : file_(&file), file_bytes_(file.size_bytes()), source_(std::move(source)) {}

void Cursor::fail(const std::string& problem) const { throw_bad_file(source_ + ": " + place_ + ": " + problem); }

void Cursor::fail_unsupported(const std::string& problem) const { throw_unsupported(source_ + ": " + place_ + ": " + problem); }

std::string Cursor::text(std::uint64_t limit_bytes) {
  const auto length = number<std::uint64_t>();
  if (length > limit_bytes) {
    fail("a string of " + std::to_string(length) + " bytes, at most " + std::to_string(limit_bytes) + " are allowed here");
  }
  require(length);
  std::string value(static_cast<std::size_t>(length), '\0');
  copy(std::as_writable_bytes(std::span(value)));
  return value;
}

void Cursor::require_elements(std::uint64_t count, std::uint64_t least_bytes) const {
  const std::uint64_t room = std::min(remaining_bytes(), kMaxDirectoryBytes);
  if (count > room / least_bytes) {
    fail("claims " + std::to_string(count) + " elements of " + std::to_string(least_bytes) + " or more bytes, but " +
         std::to_string(remaining_bytes()) + " bytes of the file remain (the limit is " + std::to_string(kMaxDirectoryBytes) +
         "); the file is damaged or truncated");
  }
}

void Cursor::require(std::uint64_t bytes) const {
  if (bytes > remaining_bytes()) {
    fail("the file is truncated: it ends at byte " + std::to_string(file_bytes_) + ", " + std::to_string(bytes - remaining_bytes()) +
         " bytes short of this field; fetch it again");
  }
  if (bytes > kMaxDirectoryBytes - std::min(position_, kMaxDirectoryBytes)) {
    fail("metadata and tensor list take more than the limit of " + std::to_string(kMaxDirectoryBytes) + " bytes");
  }
}

void Cursor::copy(std::span<std::byte> out) {
  require(out.size());
  while (!out.empty()) {
    if (unread_.empty()) refill();
    const std::size_t n = std::min(out.size(), unread_.size());
    std::memcpy(out.data(), unread_.data(), n);
    out = out.subspan(n);
    unread_ = unread_.subspan(n);
    position_ += n;
  }
}

void Cursor::refill() {
  if (file_ == nullptr) fail("goes on past the " + std::to_string(position_) + " bytes that were given");
  piece_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, remaining_bytes())));
  file_->read_at(position_, piece_);
  unread_ = piece_;
}

}  // namespace quench::gguf
