#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/tile_state.h"

namespace quench {

/// The eight tile registers of a thread and what the instructions do with them, in plain C++: for tests on machines without AMX. Follows
/// Intel's description of the instructions, shapes included; what would fault there (a tile without a shape, shapes that do not fit
/// together) ends the program with a sentence.
class EmulatedTiles {
 public:
  /// The calling thread's, as unconfigured at first as the real ones.
  static EmulatedTiles& of_thread() noexcept;

  void configure(const TileConfig& config) noexcept;
  void release() noexcept;

  void zero(int tile) noexcept;
  /// Bytes beyond the shape become zero.
  void load(int tile, const void* from, std::size_t stride) noexcept;
  void store(int tile, void* to, std::size_t stride) const noexcept;
  /// TDPBSSD, TDPBSUD: c += a b in int32 that wraps.
  void dot_signed(int c, int a, int b) noexcept;
  void dot_unsigned(int c, int a, int b) noexcept;
  /// TDPBF16PS as measured on Sapphire Rapids: a chain of fma from zero over the even elements and one over the odd, then c + (even + odd);
  /// subnormal inputs, intermediate and final results are zero.
  void dot_bf16(int c, int a, int b) noexcept;

 private:
  static constexpr std::size_t kTiles = 8;
  static constexpr std::size_t kRows = 16;
  static constexpr std::size_t kRowBytes = 64;

  struct Tile {
    std::array<std::array<std::uint8_t, kRowBytes>, kRows> bytes{};
    std::size_t rows = 0;
    std::size_t row_bytes = 0;
  };
  [[nodiscard]] Tile& shaped(int tile) noexcept;
  void check_product(int c, int a, int b) noexcept;
  template <typename Weight>
  void dot_bytes(int c, int a, int b) noexcept;

  std::array<Tile, kTiles> tiles_{};
  const TileConfig* config_ = nullptr;
};

}  // namespace quench
