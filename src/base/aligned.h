#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace quench {

/// Owning, zero-filled, 64-byte aligned memory from anonymous pages, so that pages are taken from the system only when touched and
/// go back to it on destruction. Large buffers ask for huge pages.
class AlignedBuffer {
 public:
  AlignedBuffer() noexcept = default;
  /// Throws Error(kOutOfMemory) naming `what` and the size.
  AlignedBuffer(std::size_t bytes, const char* what);
  AlignedBuffer(AlignedBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();

  [[nodiscard]] std::byte* data() noexcept { return data_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool empty() const noexcept { return bytes_ == 0; }

  template <typename T>
  [[nodiscard]] std::span<T> as() noexcept {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }
  template <typename T>
  [[nodiscard]] std::span<const T> as() const noexcept {
    return {reinterpret_cast<const T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A fixed-size array of T in an AlignedBuffer. T is trivial; elements start as zero bytes.
template <typename T>
class AlignedArray {
 public:
  AlignedArray() noexcept = default;
  AlignedArray(std::size_t count, const char* what) : buffer_(count * sizeof(T), what), count_(count) {}

  [[nodiscard]] T* data() noexcept { return reinterpret_cast<T*>(buffer_.data()); }
  [[nodiscard]] const T* data() const noexcept { return reinterpret_cast<const T*>(buffer_.data()); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return buffer_.size_bytes(); }
  [[nodiscard]] std::span<T> span() noexcept { return {data(), count_}; }
  [[nodiscard]] std::span<const T> span() const noexcept { return {data(), count_}; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }

 private:
  AlignedBuffer buffer_;
  std::size_t count_ = 0;
};

}  // namespace quench
