#pragma once

#include <cstddef>

namespace quench::generic {

/// step(sum) for each of kChains sums, over and over: chains that do not wait for one another. Every sum is a variable of its own, because
/// GCC keeps an array in memory. An empty asm in each step says that its operands may have changed, so that no product is left out.
template <int kChains, class Sum, class Step, class... Sums>
[[gnu::always_inline]] inline void run_chains(std::size_t rounds, Sum zero, const Step& step, Sums&... sums) noexcept {
  if constexpr (sizeof...(Sums) < kChains) {
    Sum sum = zero;
    run_chains<kChains>(rounds, zero, step, sums..., sum);
  } else {
    for (std::size_t round = 0; round < rounds; ++round) (step(sums), ...);
  }
}

}  // namespace quench::generic
