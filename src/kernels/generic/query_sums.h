#pragma once

#include <cstddef>

namespace quench::generic {

// Loops over the registers of a block are unrolled in full, so that the arrays they index stay in registers.
#define QUENCH_UNROLLED _Pragma("GCC unroll 16")
#ifdef __clang__
#define QUENCH_INLINE __attribute__((always_inline)) noexcept
#else
#define QUENCH_INLINE noexcept __attribute__((always_inline))
#endif

/// Sums of a block of queries in registers, from +0: kRegisters for each query.
template <typename L, std::size_t kQueries, std::size_t kRegisters>
struct QuerySums {
  using F = typename L::F;
  F of[kQueries][kRegisters];

  [[gnu::always_inline]] QuerySums() noexcept {
    QUENCH_UNROLLED for (std::size_t r = 0; r < kQueries; ++r) {
      QUENCH_UNROLLED for (std::size_t c = 0; c < kRegisters; ++c) of[r][c] = L::zero();
    }
  }
  /// Registers [kFirst, kFirst + kCount) of one query.
  template <std::size_t kFirst, std::size_t kCount, typename Load>
  [[gnu::always_inline]] void add(std::size_t r, float factor, const Load& load) noexcept {
    const F lanes = L::set1(factor);
    QUENCH_UNROLLED for (std::size_t c = kFirst; c < kFirst + kCount; ++c) of[r][c] = L::fma(lanes, load(c), of[r][c]);
  }
  /// The same of all queries. Whichever operands are fewer, broadcasts or shared registers, are held while the others pass by one at a
  /// time.
  template <std::size_t kFirst, std::size_t kCount, typename Factor, typename Load>
  [[gnu::always_inline]] void add_all(const Factor& factor, const Load& load) noexcept {
    if constexpr (kQueries < kCount) {
      F lanes[kQueries];
      QUENCH_UNROLLED for (std::size_t r = 0; r < kQueries; ++r) lanes[r] = L::set1(factor(r));
      QUENCH_UNROLLED for (std::size_t c = kFirst; c < kFirst + kCount; ++c) {
        const F shared = load(c);
        QUENCH_UNROLLED for (std::size_t r = 0; r < kQueries; ++r) of[r][c] = L::fma(lanes[r], shared, of[r][c]);
      }
    } else {
      F shared[kCount];
      QUENCH_UNROLLED for (std::size_t c = 0; c < kCount; ++c) shared[c] = load(kFirst + c);
      QUENCH_UNROLLED for (std::size_t r = 0; r < kQueries; ++r) {
        const F lanes = L::set1(factor(r));
        QUENCH_UNROLLED for (std::size_t c = 0; c < kCount; ++c) of[r][kFirst + c] = L::fma(lanes, shared[c], of[r][kFirst + c]);
      }
    }
  }
};

}  // namespace quench::generic
