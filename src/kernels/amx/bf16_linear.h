#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/amx/lanes.h"
#include "kernels/amx/token_units.h"
#include "kernels/generic/repeat.h"

namespace quench::amx {

/// bf16: the contract's order is the tile instruction's own, so the results stay in their tiles over all k of a slab. Needs tiles of bf16.
class Bf16Linear {
  using V = WordLanes;
  static constexpr int kMaxTiles = 2;            ///< that share the loads of activations: with two units of tokens four results
  static constexpr std::size_t kStepBytes = 64;  ///< 16 pairs
  static constexpr std::size_t kStepPairs = 16;
  // 512 k: 16 KiB of each tile's weights with the small ones taken out, two thirds of L1 (48 KiB on every processor with tiles).
  static constexpr std::size_t kSlabPairs = 256;

 public:
  static void tiles(const LinearTile& job) noexcept {
    LinearTile part = job;
    part.n_tiles = kMaxTiles;
    for (std::size_t i = 0; i < job.n_tiles;) {
      const bool pair = i + kMaxTiles <= job.n_tiles;
      pair ? Columns<kMaxTiles>::run(part) : Columns<1>::run(part);
      const std::size_t done = pair ? kMaxTiles : 1;
      part.tile += done * job.tile_bytes;
      part.out += done * kTileRows;
      i += done;
    }
  }

 private:
  template <int kTiles>
  struct Columns {
    static constexpr int kUnits = 4 / kTiles;  ///< in flight: four chains, as in SuperLinear

    struct Slab {
      std::size_t first;  ///< pair
      std::size_t steps;
      alignas(64) std::byte lines[kTiles][kSlabPairs][kTileRowBytes];

      /// Weights below 2^-56 are zero, and so is what fills up the last step.
      void load(const LinearTile& job, std::size_t first_pair, std::size_t pairs) noexcept {
        first = first_pair;
        steps = (pairs + kStepPairs - 1) / kStepPairs;
        for (std::size_t i = 0; i < kTiles; ++i) {
          const std::byte* weights = job.tile + i * job.tile_bytes + first * kTileRowBytes;
          for (std::size_t p = 0; p < pairs; ++p) V::store_bytes(lines[i][p], V::flush_bf16(V::load_bytes(weights + p * kTileRowBytes)));
          for (std::size_t p = pairs; p < steps * kStepPairs; ++p) V::store_bytes(lines[i][p], V::zero_i());
        }
      }
    };

    /// Results of a unit with fewer tokens than rows, and the activations of units that are not in place.
    struct Scratch {
      alignas(64) float results[kTileRows][kTileRows];
      alignas(64) std::byte copies[kUnits][kTileRows][kSlabPairs * 4];
    };

    static void run(const LinearTile& job) noexcept {
      const TokenUnits units{job.n_tokens};
      configure_for<kStepBytes>(units);
      Slab slab;
      Scratch scratch;
      const std::size_t pairs = (job.columns + 1) / 2;
      for (std::size_t first = 0; first < pairs; first += kSlabPairs) {
        slab.load(job, first, std::min(kSlabPairs, pairs - first));
        for (std::size_t u = 0; u < units.count(); u += kUnits) run_units(job, units, u, slab, scratch);
      }
    }

    static void run_units(const LinearTile& job, const TokenUnits& units, std::size_t first_unit, const Slab& slab,
                          Scratch& scratch) noexcept {
      const auto count = static_cast<int>(std::min<std::size_t>(kUnits, units.count() - first_unit));
      ActivationRows x[kUnits];
      for (int u = 0; u < count; ++u) {
        x[u] = activation_rows<BF16>(job, units, first_unit + static_cast<std::size_t>(u), slab.first * 4, slab.steps * kStepBytes,
                                     scratch.copies[u]);
      }
      each_result(count, [&](auto u, auto i, auto result)
                             __attribute__((always_inline)) { load_results<result>(job, units, first_unit + u, i, slab, scratch); });
      // The rows of the next units, a few for each step.
      const float* ahead = out_row(job, units, first_unit + kUnits, 0, 0);
      const std::size_t rows_per_step = (kUnits * kTileRows + slab.steps - 1) / slab.steps;
      for (std::size_t step = 0; step < slab.steps; ++step) {
        for (std::size_t r = 0; r < rows_per_step; ++r, ahead += job.out_stride) prefetch_to_write(ahead);
        generic::repeat<kTiles>(
            [&](auto i) __attribute__((always_inline)) { Tiles::load<kWeights + i>(slab.lines[i][step * kStepPairs], kTileRowBytes); });
        each_result(count, [&](auto u, auto i, auto result) __attribute__((always_inline)) {
          if constexpr (i == 0) x[u].template load<kActivations + u % 2>(step * kStepBytes);
          Tiles::dot_bf16<result, kActivations + u % 2, kWeights + i>();
        });
      }
      each_result(count, [&](auto u, auto i, auto result)
                             __attribute__((always_inline)) { store_results<result>(job, units, first_unit + u, i, scratch); });
    }

    /// f(unit, tile, result register) with constants, for the first `count` units.
    template <class Function>
    [[gnu::always_inline]] static void each_result(int count, const Function& f) noexcept {
      generic::repeat<kUnits>([&](auto u) __attribute__((always_inline)) {
        if (u >= count) return;
        generic::repeat<kTiles>([&](auto i)
                                    __attribute__((always_inline)) { f(u, i, std::integral_constant<int, kResults + u * kTiles + i>{}); });
      });
    }

    static float* out_row(const LinearTile& job, const TokenUnits& units, std::size_t unit, std::size_t row, std::size_t tile) noexcept {
      return job.out + (units.first(unit) + row) * job.out_stride + tile * kTileRows;
    }

    /// What the slabs before have summed up.
    template <int kResult>
    static void load_results(const LinearTile& job, const TokenUnits& units, std::size_t unit, std::size_t tile, const Slab& slab,
                             Scratch& scratch) noexcept {
      if (slab.first == 0) {
        Tiles::zero<kResult>();
      } else if (units.tokens_of(unit) == units.rows()) {
        Tiles::load<kResult>(out_row(job, units, unit, 0, tile), job.out_stride * sizeof(float));
      } else {
        for (std::size_t r = 0; r < units.tokens_of(unit); ++r) {
          V::store(scratch.results[r], V::loadu(out_row(job, units, unit, r, tile)));
        }
        Tiles::load<kResult>(scratch.results, kTileRowBytes);
      }
    }

    template <int kResult>
    static void store_results(const LinearTile& job, const TokenUnits& units, std::size_t unit, std::size_t tile,
                              Scratch& scratch) noexcept {
      if (units.tokens_of(unit) == units.rows()) {
        Tiles::store<kResult>(out_row(job, units, unit, 0, tile), job.out_stride * sizeof(float));
        return;
      }
      Tiles::store<kResult>(scratch.results, kTileRowBytes);
      for (std::size_t r = 0; r < units.tokens_of(unit); ++r) {
        V::storeu(out_row(job, units, unit, r, tile), V::load(scratch.results[r]));
      }
    }
  };
};

}  // namespace quench::amx
