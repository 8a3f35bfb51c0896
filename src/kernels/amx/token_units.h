#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/activations.h"
#include "kernels/amx/tile_registers.h"
#include "kernels/table.h"

namespace quench::amx {

static_assert(kTileRows == kUnitTokens);

/// The tokens of a job in units of 16, the rows of an activation tile.
///
/// The last unit may have fewer, and is multiplied whole: what lies in the rows past them is computed and left, so that all units have the
/// same shape and the tiles are configured once for a job. Fewer than 16 tokens in all are one unit of that many rows.
struct TokenUnits {
  std::size_t tokens;

  [[nodiscard]] std::size_t rows() const noexcept { return std::min(tokens, kTileRows); }
  [[nodiscard]] std::size_t count() const noexcept { return (tokens + kTileRows - 1) / kTileRows; }
  [[nodiscard]] static std::size_t first(std::size_t unit) noexcept { return unit * kTileRows; }
  /// Rows of a unit that are tokens.
  [[nodiscard]] std::size_t tokens_of(std::size_t unit) const noexcept { return std::min(tokens - first(unit), kTileRows); }
};

template <std::size_t kStepBytes>
void configure_for(const TokenUnits& units) noexcept {
  static constexpr TileConfigs<kStepBytes> configs;
  Tiles::configure(configs.by_tokens[units.rows()]);
}

/// Whether a job's units are those of its activations, which hold what the kernels read of them side by side. Otherwise (selected rows, a
/// start in the middle of a unit) it is gathered.
[[nodiscard]] inline bool units_in_place(const LinearTile& job) noexcept {
  return job.x->rows_in_order() && job.first_token % kTileRows == 0;
}

/// Asks for the line at p to be written soon. Sixteen rows of results that nobody has touched come at once: without it the stores of the
/// next tiles wait behind them.
[[gnu::always_inline]] inline void prefetch_to_write(const void* p) noexcept {
  asm volatile("prefetchw (%0)" : : "r"(p));  // __builtin_prefetch gives it only with a flag of its own
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

/// Bytes [begin, begin + bytes) of a unit's rows of int8 or bf16: where they lie, or copied to `copy`.
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
  if (units_in_place(job)) return {row(first) + begin, job.x->row_stride() * sizeof(Element)};
  for (std::size_t r = 0; r < units.tokens_of(unit); ++r) std::memcpy(copy[r], row(first + r) + begin, bytes);
  return {copy[0], kBytes};
}

}  // namespace quench::amx
