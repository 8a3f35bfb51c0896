#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include "base/cpu.h"
#include "kernels/table.h"

namespace quench::kernel_check {

/// Compares `kernels` with the scalar definition on random inputs; prints and returns false at the first difference.
using Check = bool (*)(const KernelTable& kernels, const KernelTable& scalar);

/// A check that kernel_check runs. One static object per check; they form a list.
class Registration {
 public:
  Registration(const char* name, Check function) noexcept : name_(name), check_(function), next_(first_) { first_ = this; }
  [[nodiscard]] static const Registration* first() noexcept { return first_; }
  [[nodiscard]] const Registration* next() const noexcept { return next_; }
  [[nodiscard]] const char* name() const noexcept { return name_; }
  [[nodiscard]] Check check() const noexcept { return check_; }

 private:
  const char* name_;
  Check check_;
  const Registration* next_;
  static inline const Registration* first_ = nullptr;
};

/// Equal bits, or both NaN; prints the first difference.
inline bool same_bits(const char* what, std::span<const float> got, std::span<const float> want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(want[i])) continue;
    std::printf("  %s [%zu]: %.9g, expected %.9g\n", what, i, static_cast<double>(got[i]), static_cast<double>(want[i]));
    return false;
  }
  return true;
}

}  // namespace quench::kernel_check
