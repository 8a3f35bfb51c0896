#pragma once

#include <cstddef>
#include <cstdint>

namespace quench {

/// The 64 bytes that LDTILECFG takes: rows and bytes of a row of each of the 8 tiles.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

/// Configures the calling thread's tiles, unless they are so already: loading a configuration costs about 200 cycles (Intel's
/// optimization manual) and clears all tiles. `config` lives as long as the program: it is known by its address. Needs Isa::kAmx.
void configure_tiles(const TileConfig& config) noexcept;

/// Gives the calling thread's tiles back, so that a context switch need not save their 8 KiB and the core may sleep deeply. Nothing where
/// none are configured. Threads of a pool call it after each run.
void release_tiles() noexcept;

}  // namespace quench
