#ifdef QUENCH_HAVE_EMULATED_KERNELS

#include "kernels/amx/emulated/emulated_tiles.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>

#include "kernels/amx/tile_shape.h"

namespace quench {
namespace {

constexpr int kC = amx::kResults, kA = amx::kActivations, kB = amx::kWeights;

/// One row of activations and one row of weights, 4 bytes in use.
constexpr TileConfig kSmall = amx::tile_config(1, 4);

/// The first result of four bytes of activations with four of weights, started from `start`.
template <typename Start, typename Product>
Start small_product(const void* x, const void* w, Start start, Product product) {
  EmulatedTiles tiles;
  tiles.configure(kSmall);
  std::array<std::byte, amx::kTileRowBytes> weights{};
  std::memcpy(weights.data(), w, 4);
  std::array<Start, 16> results{start};
  tiles.load(kC, results.data(), 64);
  tiles.load(kA, x, 4);
  tiles.load(kB, weights.data(), 64);
  product(tiles);
  tiles.store(kC, results.data(), 64);
  return results[0];
}

TEST(EmulatedTiles, TheTwoByteProductsDifferInTheSignOfTheWeights) {
  const std::array<std::int8_t, 4> x = {-128, 127, -1, 0};
  const std::array<std::uint8_t, 4> w = {200, 255, 128, 77};
  const auto plus = [](EmulatedTiles& tiles) { tiles.dot_unsigned(kC, kA, kB); };
  const auto signed_plus = [](EmulatedTiles& tiles) { tiles.dot_signed(kC, kA, kB); };
  EXPECT_EQ(small_product(x.data(), w.data(), std::int32_t{5}, plus), 5 - 128 * 200 + 127 * 255 - 128);
  EXPECT_EQ(small_product(x.data(), w.data(), std::int32_t{5}, signed_plus), 5 - 128 * -56 + 127 * -1 - -128);
}

TEST(EmulatedTiles, AShapeBoundsWhatIsReadMultipliedAndWritten) {
  static constexpr TileConfig kConfig = amx::tile_config(3, 32);
  EmulatedTiles tiles;
  tiles.configure(kConfig);
  std::array<std::array<std::int8_t, 32>, 3> x;
  for (auto& row : x) row.fill(2);
  std::array<std::int8_t, 8 * 64> w;
  w.fill(3);
  std::array<std::int32_t, 4 * 16> out;
  out.fill(-1);
  tiles.zero(kC);
  tiles.load(kA, x.data(), 32);
  tiles.load(kB, w.data(), 64);
  tiles.dot_signed(kC, kA, kB);
  tiles.store(kC, out.data(), 64);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i < 48 ? 32 * 6 : -1) << i;
}

float bf16_product(std::array<float, 2> x, std::array<float, 2> w, float start) {
  std::array<std::uint16_t, 2> x_halves;
  std::array<std::uint16_t, 2> w_halves;
  for (std::size_t i = 0; i < 2; ++i) {
    x_halves[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x[i]) >> 16);
    w_halves[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(w[i]) >> 16);
  }
  return small_product(x_halves.data(), w_halves.data(), start, [](EmulatedTiles& tiles) { tiles.dot_bf16(kC, kA, kB); });
}

TEST(EmulatedTiles, Bf16SumsAreRoundedPerChainAndThenAdded) {
  // Each chain is exact; their sum 2^24 + 1 rounds to 2^24, and so does what follows: with another order the start would survive.
  EXPECT_EQ(bf16_product({0x1p12f, 1.0f}, {0x1p12f, 1.0f}, 1.0f), 0x1p24f);
  EXPECT_EQ(bf16_product({0x1p12f, -0x1p12f}, {0x1p12f, 0x1p12f}, 1.0f), 1.0f);
}

TEST(EmulatedTiles, Bf16FlushesSubnormalInputsResultsAndSums) {
  EXPECT_EQ(bf16_product({0x1p-130f, 0.0f}, {0x1p20f, 0.0f}, 0.0f), 0.0f);
  EXPECT_EQ(bf16_product({0x1p-70f, 0.0f}, {0x1p-70f, 0.0f}, 0.0f), 0.0f);
  EXPECT_EQ(bf16_product({0.0f, 0.0f}, {0.0f, 0.0f}, 0x1p-130f), 0.0f);
  EXPECT_EQ(bf16_product({0x1p-63f, 0.0f}, {0x1p-63f, 0.0f}, 0.0f), 0x1p-126f);
}

TEST(EmulatedTilesDeathTest, WhatWouldFaultEndsTheProgram) {
  EmulatedTiles tiles;
  EXPECT_DEATH(tiles.zero(kC), "a tile without a shape");
  static constexpr TileConfig kMisfit = [] {
    TileConfig config = amx::tile_config(4, 64);
    config.rows[kB] = 8;
    return config;
  }();
  tiles.configure(kMisfit);
  EXPECT_DEATH(tiles.dot_signed(kC, kA, kB), "shapes that do not fit together");
  tiles.release();
  EXPECT_DEATH(tiles.zero(kC), "a tile without a shape");
}

}  // namespace
}  // namespace quench

#endif
