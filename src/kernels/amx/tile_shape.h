#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tile_state.h"

/// Shapes of tiles, for the real registers and for the emulated ones.
namespace quench::amx {

constexpr std::size_t kTileRows = 16;      ///< most rows of a tile, and the rows of a weight tile
constexpr std::size_t kTileRowBytes = 64;  ///< most bytes of a tile's row
constexpr std::size_t kTileBytes = kTileRows * kTileRowBytes;

// Registers 0 to 3 hold results, 4 and 5 activations, 6 and 7 weights.
constexpr int kResults = 0;
constexpr int kActivations = 4;
constexpr int kWeights = 6;

/// results      [tokens][16] int32 or f32
/// activations  [tokens][step_bytes]
/// weights      [step_bytes / 4][16][4]
constexpr TileConfig tile_config(std::size_t tokens, std::size_t step_bytes) noexcept {
  TileConfig config;
  const auto set = [&config](int tile, std::size_t rows, std::size_t row_bytes) {
    config.rows[tile] = static_cast<std::uint8_t>(rows);
    config.row_bytes[tile] = static_cast<std::uint16_t>(row_bytes);
  };
  for (int tile = kResults; tile < kActivations; ++tile) set(tile, tokens, kTileRowBytes);
  for (int tile = kActivations; tile < kWeights; ++tile) set(tile, tokens, step_bytes);
  for (int tile = kWeights; tile < 8; ++tile) set(tile, step_bytes / 4, kTileRowBytes);
  return config;
}

/// A product takes as many cycles as its activations have rows: fewer than 16 tokens get a configuration of their own, more never change
/// it. One static object for each pair, as configure_tiles wants.
template <std::size_t kStepBytes>
struct TileConfigs {
  TileConfig by_tokens[kTileRows + 1];

  constexpr TileConfigs() noexcept : by_tokens{} {
    for (std::size_t tokens = 1; tokens <= kTileRows; ++tokens) by_tokens[tokens] = tile_config(tokens, kStepBytes);
  }
};

}  // namespace quench::amx
