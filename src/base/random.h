#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace quench {

/// xoshiro256** seeded through splitmix64. Source: Blackman & Vigna 2018. The stream for a seed never changes between versions:
/// sampled text and synthetic models depend on it.
class Xoshiro256 {
 public:
  explicit constexpr Xoshiro256(std::uint64_t seed) noexcept {
    for (auto& word : state_) {
      seed += 0x9E3779B97F4A7C15u;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      word = z ^ (z >> 31);
    }
  }

  constexpr std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

  /// Uniform in [0, bound); bound > 0. The bias of the multiply-shift is below 2^-32 for the bounds used here.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

  [[nodiscard]] constexpr const std::array<std::uint64_t, 4>& state() const noexcept { return state_; }
  constexpr void set_state(const std::array<std::uint64_t, 4>& state) noexcept { state_ = state; }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace quench
