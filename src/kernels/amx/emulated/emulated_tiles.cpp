#include "kernels/amx/emulated/emulated_tiles.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace quench {
namespace {

void require(bool holds, const char* what) noexcept {
  if (holds) return;
  std::fprintf(stderr, "emulated tiles: %s: the processor would fault here\n", what);
  std::abort();
}

float flushed(float v) noexcept { return std::fabs(v) < std::numeric_limits<float>::min() ? std::copysign(0.0f, v) : v; }

float bf16_at(const std::uint8_t* p) noexcept {
  std::uint16_t half;
  std::memcpy(&half, p, sizeof half);
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return flushed(value);
}

}  // namespace

EmulatedTiles& EmulatedTiles::of_thread() noexcept {
  thread_local EmulatedTiles tiles;
  return tiles;
}

void EmulatedTiles::configure(const TileConfig& config) noexcept {
  if (config_ == &config) return;
  require(config.palette == 1 && config.start_row == 0, "only palette 1 from row 0");
  release();
  for (std::size_t i = 0; i < kTiles; ++i) {
    require(config.rows[i] <= kRows && config.row_bytes[i] <= kRowBytes, "a shape larger than a tile");
    tiles_[i].rows = config.rows[i];
    tiles_[i].row_bytes = config.row_bytes[i];
  }
  config_ = &config;
}

void EmulatedTiles::release() noexcept {
  tiles_ = {};
  config_ = nullptr;
}

EmulatedTiles::Tile& EmulatedTiles::shaped(int tile) noexcept {
  Tile& found = tiles_[static_cast<std::size_t>(tile)];
  require(found.rows > 0 && found.row_bytes > 0, "a tile without a shape");
  return found;
}

void EmulatedTiles::zero(int tile) noexcept { shaped(tile).bytes = {}; }

void EmulatedTiles::load(int tile, const void* from, std::size_t stride) noexcept {
  Tile& to = shaped(tile);
  to.bytes = {};
  for (std::size_t row = 0; row < to.rows; ++row) {
    std::memcpy(to.bytes[row].data(), static_cast<const std::byte*>(from) + row * stride, to.row_bytes);
  }
}

void EmulatedTiles::store(int tile, void* to, std::size_t stride) const noexcept {
  const Tile& from = const_cast<EmulatedTiles*>(this)->shaped(tile);
  for (std::size_t row = 0; row < from.rows; ++row) {
    std::memcpy(static_cast<std::byte*>(to) + row * stride, from.bytes[row].data(), from.row_bytes);
  }
}

void EmulatedTiles::check_product(int c, int a, int b) noexcept {
  require(c != a && c != b && a != b, "a product of a tile with itself");
  require(shaped(c).rows == shaped(a).rows && shaped(a).row_bytes == 4 * shaped(b).rows && shaped(c).row_bytes == shaped(b).row_bytes,
          "shapes that do not fit together");
}

template <typename Weight>
void EmulatedTiles::dot_bytes(int c, int a, int b) noexcept {
  check_product(c, a, b);
  Tile& sums = shaped(c);
  const Tile& x = shaped(a);
  const Tile& w = shaped(b);
  for (std::size_t m = 0; m < sums.rows; ++m) {
    std::array<std::uint32_t, kRowBytes / 4> row;
    std::memcpy(row.data(), sums.bytes[m].data(), kRowBytes);
    for (std::size_t k = 0; k < x.row_bytes; ++k) {
      const std::int32_t value = static_cast<std::int8_t>(x.bytes[m][k]);
      for (std::size_t n = 0; n < row.size(); ++n) {
        row[n] += static_cast<std::uint32_t>(value * std::int32_t{static_cast<Weight>(w.bytes[k / 4][4 * n + k % 4])});
      }
    }
    std::memcpy(sums.bytes[m].data(), row.data(), sums.row_bytes);
  }
}
void EmulatedTiles::dot_signed(int c, int a, int b) noexcept { dot_bytes<std::int8_t>(c, a, b); }
void EmulatedTiles::dot_unsigned(int c, int a, int b) noexcept { dot_bytes<std::uint8_t>(c, a, b); }

void EmulatedTiles::dot_bf16(int c, int a, int b) noexcept {
  check_product(c, a, b);
  Tile& sums = shaped(c);
  const Tile& x = shaped(a);
  const Tile& w = shaped(b);
  for (std::size_t m = 0; m < sums.rows; ++m) {
    for (std::size_t n = 0; n < sums.row_bytes / 4; ++n) {
      float even = 0.0f;
      float odd = 0.0f;
      for (std::size_t pair = 0; pair < w.rows; ++pair) {
        even = flushed(std::fma(bf16_at(&x.bytes[m][4 * pair]), bf16_at(&w.bytes[pair][4 * n]), even));
        odd = flushed(std::fma(bf16_at(&x.bytes[m][4 * pair + 2]), bf16_at(&w.bytes[pair][4 * n + 2]), odd));
      }
      float sum;
      std::memcpy(&sum, &sums.bytes[m][4 * n], sizeof sum);
      sum = flushed(flushed(sum) + flushed(even + odd));
      std::memcpy(&sums.bytes[m][4 * n], &sum, sizeof sum);
    }
  }
}

}  // namespace quench
