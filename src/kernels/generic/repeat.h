#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace quench::generic {

/// f(0), f(1), ... f(kCount - 1) with compile-time arguments: a loop that is unrolled for certain, so that arrays indexed by it stay in
/// registers.
template <int kCount, class Function>
[[gnu::always_inline]] inline void repeat(const Function& f) {
  [&]<int... i>(std::integer_sequence<int, i...>)
      __attribute__((always_inline)) { (f(std::integral_constant<int, i>{}), ...); }(std::make_integer_sequence<int, kCount>{});
}

/// f(s, t) for each register of kSubs x kTokens, s first.
template <int kSubs, int kTokens, class Function>
[[gnu::always_inline]] inline void for_registers(const Function& f) {
  repeat<kSubs>([&](auto s) __attribute__((always_inline)) { repeat<kTokens>([&](auto t) __attribute__((always_inline)) { f(s, t); }); });
}

/// Calls f<tokens>(first) for groups of kMax tokens, then of half as many, ... that cover [token, n). kMax is a power of two.
template <int kMax, class Function>
[[gnu::always_inline]] inline void for_token_groups(std::size_t n, const Function& f, std::size_t token = 0) {
  for (; token + kMax <= n; token += kMax) f(std::integral_constant<int, kMax>{}, token);
  if constexpr (kMax > 1) for_token_groups<kMax / 2>(n, f, token);
}

/// How many groups for_token_groups<kMax> makes of n tokens.
template <int kMax>
[[gnu::always_inline]] inline std::size_t token_groups_of(std::size_t n) {
  std::size_t groups = n / kMax;
  for (std::size_t rest = n % kMax; rest > 0; rest &= rest - 1) ++groups;
  return groups;
}

}  // namespace quench::generic
