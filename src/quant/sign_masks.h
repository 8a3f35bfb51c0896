#pragma once

#include <array>
#include <bit>
#include <cstdint>

// Not inline: kernels of several instruction sets include this, and each keeps its own copy (scripts/check_isa_symbols.py).
namespace quench {

/// Entry s: byte j is 0xFF where bit j of s is set.
constexpr auto kSignMasks = [] {
  std::array<std::uint64_t, 256> masks{};
  for (unsigned s = 0; s < 256; ++s) {
    for (unsigned j = 0; j < 8; ++j) masks[s] |= ((s >> j) & 1u) != 0 ? std::uint64_t{0xFF} << (8 * j) : 0;
  }
  return masks;
}();

/// Seven stored signs; the eighth makes their number even.
constexpr auto kEvenSigns = [] {
  std::array<std::uint8_t, 128> signs{};
  for (unsigned s = 0; s < 128; ++s) signs[s] = static_cast<std::uint8_t>(s | ((static_cast<unsigned>(std::popcount(s)) & 1u) << 7));
  return signs;
}();

}  // namespace quench
