#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace quench {

/// 64 x 64 -> 128 bit product folded onto itself: every input bit reaches every output bit. Source: wyhash's mixing step.
[[nodiscard]] inline std::uint64_t hash_mix(std::uint64_t a, std::uint64_t b) noexcept {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

constexpr std::uint64_t kHashSeed1 = 0x9E3779B97F4A7C15u;
constexpr std::uint64_t kHashSeed2 = 0xD1B54A32D192ED03u;

/// The first `bytes` (0 to 8) of `data` as a little-endian word, zero-padded. Reads nothing beyond them.
[[nodiscard]] inline std::uint64_t load_prefix(const char* data, std::size_t bytes) noexcept {
  std::uint64_t word = 0;
  if (bytes >= 8) {
    std::memcpy(&word, data, 8);
    return word;
  }
  if (bytes >= 4) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + bytes - 4, 4);
    return low | (static_cast<std::uint64_t>(high) << (8 * (bytes - 4)));
  }
  if (bytes == 0) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(data[i])) << (8 * i); };
  return byte(0) | byte(bytes / 2) | byte(bytes - 1);
}

/// Hash of short strings, for tables of vocabulary entries. Not stable between machines of different byte order.
[[nodiscard]] inline std::uint64_t hash_text(std::string_view text) noexcept {
  std::uint64_t state = kHashSeed1 ^ text.size();
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) state = hash_mix(state ^ load_prefix(text.data() + i, 8), kHashSeed2);
  return hash_mix(state ^ load_prefix(text.data() + i, text.size() - i), kHashSeed2 ^ kHashSeed1);
}

}  // namespace quench
