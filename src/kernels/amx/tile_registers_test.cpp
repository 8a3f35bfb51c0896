#ifdef QUENCH_HAVE_EMULATED_KERNELS

#include "kernels/amx/tile_registers.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "base/cpu.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "kernels/amx/emulated/emulated_tiles.h"
#include "kernels/amx/emulated/tile_traps.h"

namespace quench::amx {
namespace {

constexpr std::size_t kTokens = 11;
constexpr TileConfig kConfig = tile_config(kTokens, 64);
constexpr std::size_t kStride = 80;
constexpr int kC = kResults + 1, kA = kActivations + 1, kB = kWeights + 1;

struct Operands {
  std::array<std::uint8_t, kTokens * kStride> x;
  std::array<std::uint8_t, kTileBytes> w;
  std::array<std::uint32_t, kTokens * 16> start;

  explicit Operands(std::uint64_t seed) {
    Xoshiro256 random(seed);
    // As bf16, too: exponents near 1.
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i % 2 == 0 ? random.next() : 0x3C + random.below(8));
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::uint8_t>(i % 2 == 0 ? random.next() : 0xBC + random.below(8));
    for (auto& word : start) word = static_cast<std::uint32_t>(0x3F800000 + random.below(1 << 20));
  }
};

using Results = std::array<std::uint32_t, kTokens * 16>;

/// `start` + x w through the instructions, beside the emulation called by name.
template <typename Real, typename Emulated>
void expect_equal(const Real& real, const Emulated& emulated) {
  const Operands operands(5);
  Results got = operands.start;
  Results want = operands.start;
  Tiles::configure(kConfig);
  Tiles::load<kC>(got.data(), 64);
  Tiles::load<kA>(operands.x.data(), kStride);
  Tiles::load<kB>(operands.w.data(), 64);
  real();
  Tiles::store<kC>(got.data(), 64);
  release_tiles();

  EmulatedTiles tiles;
  tiles.configure(kConfig);
  tiles.load(kC, want.data(), 64);
  tiles.load(kA, operands.x.data(), kStride);
  tiles.load(kB, operands.w.data(), 64);
  emulated(tiles);
  tiles.store(kC, want.data(), 64);
  EXPECT_EQ(got, want);
  EXPECT_NE(got, operands.start);
}

class TileRegisters : public ::testing::Test {
 protected:
  TileRegisters() { (void)cpu_features(); }  // asks the kernel for tiles where there are any

 private:
  TileTraps traps_;
};

TEST_F(TileRegisters, ProductsOfBytesTakeTheirOperandsInTheRightOrder) {
  expect_equal([] { Tiles::dot_signed<kC, kA, kB>(); }, [](EmulatedTiles& tiles) { tiles.dot_signed(kC, kA, kB); });
  expect_equal([] { Tiles::dot_unsigned<kC, kA, kB>(); }, [](EmulatedTiles& tiles) { tiles.dot_unsigned(kC, kA, kB); });
}

TEST_F(TileRegisters, ProductsOfBf16AreTheEmulatedOnes) {
  if (cpu_features().amx && !cpu_features().amx_bf16) GTEST_SKIP() << "the tiles of this processor multiply bytes only";
  expect_equal([] { Tiles::dot_bf16<kC, kA, kB>(); }, [](EmulatedTiles& tiles) { tiles.dot_bf16(kC, kA, kB); });
}

TEST_F(TileRegisters, ZeroClearsAndAShapeBoundsTheStore) {
  std::array<std::uint32_t, (kTokens + 1) * 16> out;
  out.fill(7);
  Tiles::configure(kConfig);
  Tiles::zero<kC>();
  Tiles::store<kC>(out.data(), 64);
  release_tiles();
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i < kTokens * 16 ? 0u : 7u);
}

TEST_F(TileRegisters, AThreadKeepsItsConfigurationUntilItReleasesIt) {
  std::array<std::uint32_t, kTokens * 16> kept;
  kept.fill(9);
  Tiles::configure(kConfig);
  Tiles::load<kC>(kept.data(), 64);
  std::thread([] {
    static constexpr TileConfig kOther = tile_config(3, 32);
    Tiles::configure(kOther);
    Tiles::zero<kC>();
    release_tiles();
  }).join();
  Tiles::configure(kConfig);  // the same: must not clear
  Results out{};
  Tiles::store<kC>(out.data(), 64);
  EXPECT_EQ(out, kept);
  release_tiles();
  Tiles::configure(kConfig);
  Tiles::store<kC>(out.data(), 64);
  EXPECT_EQ(out, Results{}) << "a configuration that is loaded anew clears the tiles";
  release_tiles();
}

TEST_F(TileRegisters, APoolGivesTilesBackAfterEachRun) {
  ThreadPool pool(1);
  std::array<std::uint32_t, kTokens * 16> nines;
  nines.fill(9);
  pool.run(1, [&](std::size_t, int) noexcept {
    Tiles::configure(kConfig);
    Tiles::load<kC>(nines.data(), 64);
  });
  Results out;
  Tiles::configure(kConfig);
  Tiles::store<kC>(out.data(), 64);
  EXPECT_EQ(out, Results{});
  release_tiles();
}

}  // namespace
}  // namespace quench::amx

#endif
