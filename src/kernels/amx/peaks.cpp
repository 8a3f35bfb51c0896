// A measure of the processor: there is nothing to emulate.
#ifndef QUENCH_EMULATE_AMX

#include "kernels/amx/tile_registers.h"
#include "kernels/fillers.h"
#include "kernels/generic/repeat.h"

namespace quench::amx {
namespace {

constexpr std::size_t kStepBytes = 64;
constexpr TileConfig kConfig = tile_config(kTileRows, kStepBytes);

/// Four products of whole tiles that share their operands, as the kernels run them: none waits for another.
template <bool kBf16>
std::uint64_t dot_peak(std::size_t rounds) noexcept {
  constexpr std::uint64_t kOperations = 2 * kTileRows * kTileRows * kStepBytes / (kBf16 ? 2 : 1);
  Tiles::configure(kConfig);
  generic::repeat<8>([](auto tile) __attribute__((always_inline)) { Tiles::zero<tile>(); });
  for (std::size_t round = 0; round < rounds; ++round) {
    generic::repeat<4>([](auto i) __attribute__((always_inline)) {
      constexpr int kX = kActivations + i / 2;
      constexpr int kW = kWeights + i % 2;
      if constexpr (kBf16) {
        Tiles::dot_bf16<kResults + i, kX, kW>();
      } else {
        Tiles::dot_signed<kResults + i, kX, kW>();
      }
    });
  }
  return rounds * 4 * kOperations;
}

}  // namespace

void fill_peaks(KernelTable& table, bool with_bf16) {
  table.int8_dot_peak = dot_peak<false>;
  if (with_bf16) table.bf16_dot_peak = dot_peak<true>;
}

}  // namespace quench::amx

#endif
