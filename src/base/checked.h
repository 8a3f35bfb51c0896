#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

namespace quench {

/// Arithmetic on sizes that come from outside: the sum or product, or nothing when it does not fit.
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

[[nodiscard]] constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// `value` rounded up to a multiple of `alignment` (a power of two), or nothing when it does not fit.
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_align(std::uint64_t value, std::uint64_t alignment) noexcept {
  const auto raised = checked_add(value, alignment - 1);
  if (!raised) return std::nullopt;
  return *raised & ~(alignment - 1);
}

/// `value` as a `To`, or nothing when it does not fit.
template <std::integral To, std::integral From>
[[nodiscard]] constexpr std::optional<To> checked_cast(From value) noexcept {
  To result{};
  if (__builtin_add_overflow(value, From{0}, &result)) return std::nullopt;
  return result;
}

/// The smallest multiple of `unit` that is at least `value`. Sizes are already validated.
template <std::integral T>
[[nodiscard]] constexpr T round_up(T value, T unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

template <std::integral T>
[[nodiscard]] constexpr T ceil_div(T value, T unit) noexcept {
  return (value + unit - 1) / unit;
}

}  // namespace quench
