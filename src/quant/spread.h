#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Spreading packed quants into bytes, in portable code: baseline x86-64 has no byte shuffle, so tables give several quants a load.
namespace quench {

inline constexpr std::uint64_t kOneInEachByte = 0x0101010101010101u;

/// Byte j is 0x80 where bit j of `bits` is set, else 0.
[[nodiscard]] inline std::uint64_t spread_bits(std::uint8_t bits) noexcept {
  const std::uint64_t own_bit = (bits * kOneInEachByte) & 0x8040201008040201u;
  // A byte that kept its bit reaches 0x80 or more when 0x7F is added; none exceeds 0xFF, so nothing carries.
  return (own_bit + 0x7F * kOneInEachByte) & (0x80 * kOneInEachByte);
}

inline void store_eight(std::uint64_t quants, std::int8_t* to) noexcept { std::memcpy(to, &quants, sizeof(quants)); }

/// Spreads `kRun` bytes into 2 x kRun quants: low nibbles, then high nibbles, each minus `bias`.
template <std::size_t kRun, int kBias>
inline void spread_nibbles(const std::uint8_t* packed, std::int8_t* quants) noexcept {
  for (std::size_t j = 0; j < kRun; ++j) {
    quants[j] = static_cast<std::int8_t>((packed[j] & 0x0F) - kBias);
    quants[j + kRun] = static_cast<std::int8_t>((packed[j] >> 4) - kBias);
  }
}

/// For each byte, the table value of its low nibble (low byte) and of its high nibble (high byte).
using NibblePairs = std::array<std::uint16_t, 256>;

[[nodiscard]] constexpr NibblePairs nibble_pairs(const std::array<std::int8_t, 16>& values) noexcept {
  NibblePairs pairs{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const unsigned low = static_cast<std::uint8_t>(values[byte & 15]);
    const unsigned high = static_cast<std::uint8_t>(values[byte >> 4]);
    pairs[byte] = static_cast<std::uint16_t>(low | (high << 8));
  }
  return pairs;
}

/// As spread_nibbles, each nibble looked up. kRun is 8 or 16.
template <std::size_t kRun>
inline void look_up_nibbles(const std::uint8_t* packed, const NibblePairs& pairs, std::int8_t* quants) noexcept {
  for (std::size_t at = 0; at < kRun; at += 8) {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    for (std::size_t j = 0; j < 8; ++j) {
      const std::uint64_t pair = pairs[packed[at + j]];
      low |= (pair & 0xFF) << (8 * j);
      high |= (pair >> 8) << (8 * j);
    }
    store_eight(low, quants + at);
    store_eight(high, quants + at + kRun);
  }
}

/// The inverse of spread_nibbles without a bias: 2 x kRun codes of 0..15 into kRun bytes.
template <std::size_t kRun>
inline void pack_nibbles(const std::uint8_t* codes, std::uint8_t* packed) noexcept {
  for (std::size_t j = 0; j < kRun; ++j) packed[j] = static_cast<std::uint8_t>((codes[j] & 0x0F) | (codes[j + kRun] << 4));
}

}  // namespace quench
