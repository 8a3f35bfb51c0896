#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/aligned.h"
#include "tensor/axes.h"

namespace quench {

namespace tensor_detail {

template <class T, class Dropped, class... Axis>
struct RowOf;

}  // namespace tensor_detail

/// A borrowed dense tensor: a pointer, and one size per axis, the last axis contiguous. Axes are checked by the compiler, sizes were
/// checked when the tensor was made; access is unchecked and costs what a pointer costs.
template <class T, class... Axis>
class View {
 public:
  static constexpr std::size_t kRank = sizeof...(Axis);
  static_assert(kRank > 0, "a tensor has at least one axis");
  using Sizes = std::array<std::size_t, kRank>;

  constexpr View(T* data, const Sizes& sizes) noexcept : data_(data), sizes_(sizes) {}

  /// A mutable view is a constant one, too; axes never convert.
  constexpr operator View<const T, Axis...>() const noexcept
    requires(!std::is_const_v<T>)
  {
    return {data_, sizes_};
  }

  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const Sizes& sizes() const noexcept { return sizes_; }

  template <class Wanted>
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    static_assert(kHasAxis<Wanted, Axis...>, "the tensor has no such axis");
    return sizes_[kAxisIndex<Wanted, Axis...>];
  }

  [[nodiscard]] constexpr std::size_t element_count() const noexcept {
    std::size_t count = 1;
    for (const std::size_t size : sizes_) count *= size;
    return count;
  }

  /// Elements between neighbours on the first axis.
  [[nodiscard]] constexpr std::size_t stride() const noexcept {
    std::size_t count = 1;
    for (std::size_t i = 1; i < kRank; ++i) count *= sizes_[i];
    return count;
  }

  /// Element `index` of the first axis: a tensor without that axis.
  [[nodiscard]] constexpr auto row(std::size_t index) const noexcept {
    static_assert(kRank > 1, "a tensor of one axis has elements, not rows");
    return typename tensor_detail::RowOf<T, Axis...>::Type{data_ + index * stride(), tail_sizes()};
  }

  /// Elements [begin, begin + count) of the first axis.
  [[nodiscard]] constexpr View rows(std::size_t begin, std::size_t count) const noexcept {
    Sizes sizes = sizes_;
    sizes[0] = count;
    return {data_ + begin * stride(), sizes};
  }

  [[nodiscard]] constexpr std::span<T> elements() const noexcept { return {data_, element_count()}; }

 private:
  [[nodiscard]] constexpr std::array<std::size_t, kRank - 1> tail_sizes() const noexcept {
    std::array<std::size_t, kRank - 1> tail{};
    for (std::size_t i = 1; i < kRank; ++i) tail[i - 1] = sizes_[i];
    return tail;
  }

  T* data_;
  Sizes sizes_;
};

namespace tensor_detail {

template <class T, class Dropped, class... Axis>
struct RowOf {
  using Type = View<T, Axis...>;
};

}  // namespace tensor_detail

/// An owning dense tensor: zero-filled, 64-byte aligned.
template <class T, class... Axis>
class Tensor {
 public:
  using Sizes = typename View<T, Axis...>::Sizes;

  Tensor() noexcept = default;
  /// One size per axis, in order. Throws Error(kOutOfMemory) naming `what`.
  Tensor(const Sizes& sizes, const char* what) : sizes_(sizes), data_(View<T, Axis...>(nullptr, sizes).element_count(), what) {}

  [[nodiscard]] View<T, Axis...> view() noexcept { return {data_.data(), sizes_}; }
  [[nodiscard]] View<const T, Axis...> view() const noexcept { return {data_.data(), sizes_}; }
  /// The first `count` elements of the first axis: scratch is made for the largest step and used for the present one.
  [[nodiscard]] View<T, Axis...> first(std::size_t count) noexcept { return view().rows(0, count); }

  template <class Wanted>
  [[nodiscard]] std::size_t size() const noexcept {
    return view().template size<Wanted>();
  }
  [[nodiscard]] T* data() noexcept { return data_.data(); }
  [[nodiscard]] const T* data() const noexcept { return data_.data(); }
  [[nodiscard]] bool empty() const noexcept { return data_.size() == 0; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return data_.size_bytes(); }

 private:
  Sizes sizes_{};
  AlignedArray<T> data_;
};

}  // namespace quench
