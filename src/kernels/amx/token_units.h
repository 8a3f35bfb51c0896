#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/activations.h"
#include "kernels/amx/tile_registers.h"
#include "kernels/table.h"

namespace quench::amx {

/// The tokens of a job in units of 16, the rows of an activation tile.
///
/// Where 16 do not divide them, the last unit starts early and shares rows with the one before it, which it computes and leaves: so that
/// all units have the same shape, and the tiles are configured once for a job. Fewer than 16 tokens are one unit of that many rows.
struct TokenUnits {
  std::size_t tokens;

  [[nodiscard]] std::size_t rows() const noexcept { return tokens < kTileRows ? tokens : kTileRows; }
  [[nodiscard]] std::size_t count() const noexcept { return (tokens + kTileRows - 1) / kTileRows; }
  /// First token of a unit's tile.
  [[nodiscard]] std::size_t first(std::size_t unit) const noexcept {
    const std::size_t last_first = tokens - rows();
    return unit * kTileRows < last_first ? unit * kTileRows : last_first;
  }
  /// Rows at the start of the tile that belong to the unit before.
  [[nodiscard]] std::size_t shared(std::size_t unit) const noexcept { return unit * kTileRows - first(unit); }
};

template <std::size_t kStepBytes>
void configure_for(const TokenUnits& units) noexcept {
  static constexpr TileConfigs<kStepBytes> configs;
  Tiles::configure(configs.by_tokens[units.rows()]);
}

/// What an activation tile is loaded from.
struct ActivationRows {
  const std::byte* first;
  std::size_t stride;  ///< bytes

  template <int kTile>
  [[gnu::always_inline]] void load(std::size_t byte) const noexcept {
    Tiles::load<kTile>(first + byte, stride);
  }
};

/// Bytes [begin, begin + bytes) of a unit's rows of int8 or bf16: where they lie, or, since a tile's rows must be evenly spaced, copied to
/// `copy` where rows have been selected.
template <typename Element, std::size_t kBytes>
[[nodiscard]] inline ActivationRows activation_rows(const LinearTile& job, const TokenUnits& units, std::size_t unit, std::size_t begin,
                                                    std::size_t bytes, std::byte (&copy)[kTileRows][kBytes]) noexcept {
  const auto row = [&job](std::size_t token) {
    if constexpr (sizeof(Element) == 1) {
      return reinterpret_cast<const std::byte*>(job.x->quants_row(job.first_token + token));
    } else {
      return reinterpret_cast<const std::byte*>(job.x->bf16_row(job.first_token + token));
    }
  };
  const std::size_t first = units.first(unit);
  if (job.x->rows_in_order()) return {row(first) + begin, job.x->row_stride() * sizeof(Element)};
  for (std::size_t r = 0; r < units.rows(); ++r) std::memcpy(copy[r], row(first + r) + begin, bytes);
  return {copy[0], kBytes};
}

}  // namespace quench::amx
