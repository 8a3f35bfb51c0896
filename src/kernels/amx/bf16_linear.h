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
  // Four chains, as in SuperLinear.
  static constexpr int kUnits = 4;
  static constexpr std::size_t kStepBytes = 64;  ///< 16 pairs
  static constexpr std::size_t kStepPairs = 16;
  // 512 k: 16 KiB of weights with the small ones taken out, as in GroupLinear.
  static constexpr std::size_t kSlabPairs = 256;

  struct Slab {
    std::size_t first;  ///< pair
    std::size_t steps;
    alignas(64) std::byte lines[kSlabPairs][kTileRowBytes];

    /// Weights below 2^-56 are zero, and so is what fills up the last step.
    void load(const LinearTile& job, std::size_t first_pair, std::size_t pairs) noexcept {
      first = first_pair;
      steps = (pairs + kStepPairs - 1) / kStepPairs;
      for (std::size_t p = 0; p < pairs; ++p) {
        V::store_bytes(lines[p], V::flush_bf16(V::load_bytes(job.tile + (first + p) * kTileRowBytes)));
      }
      for (std::size_t p = pairs; p < steps * kStepPairs; ++p) V::store_bytes(lines[p], V::zero_i());
    }
  };

  /// Results of a unit with fewer tokens than rows, and the activations of units that are not in place.
  struct Scratch {
    alignas(64) float results[kTileRows][kTileRows];
    alignas(64) std::byte copies[kUnits][kTileRows][kSlabPairs * 4];
  };

 public:
  static void tiles(const LinearTile& job) noexcept {
    LinearTile one = job;
    for (std::size_t i = 0; i < job.n_tiles; ++i, one.tile += job.tile_bytes, one.out += kTileRows) tile(one);
  }

 private:
  static void tile(const LinearTile& job) noexcept {
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
    for (int i = 0; i < count; ++i) {
      x[i] = activation_rows<BF16>(job, units, first_unit + static_cast<std::size_t>(i), slab.first * 4, slab.steps * kStepBytes,
                                   scratch.copies[i]);
    }
    each_unit(count, [&](auto i) __attribute__((always_inline)) { load_results<kResults + i>(job, units, first_unit + i, slab, scratch); });
    // The rows of the next units: 64 of them, a few for each step.
    const float* ahead = out_row(job, units, first_unit + kUnits, 0);
    const std::size_t rows_per_step = (kUnits * kTileRows + slab.steps - 1) / slab.steps;
    for (std::size_t step = 0; step < slab.steps; ++step) {
      for (std::size_t r = 0; r < rows_per_step; ++r, ahead += job.out_stride) prefetch_to_write(ahead);
      Tiles::load<kWeights>(slab.lines[step * kStepPairs], kTileRowBytes);
      each_unit(count, [&](auto i) __attribute__((always_inline)) {
        x[i].template load<kActivations + i % 2>(step * kStepBytes);
        Tiles::dot_bf16<kResults + i, kActivations + i % 2, kWeights>();
      });
    }
    each_unit(count, [&](auto i) __attribute__((always_inline)) { store_results<kResults + i>(job, units, first_unit + i, scratch); });
  }

  template <class Function>
  [[gnu::always_inline]] static void each_unit(int count, const Function& f) noexcept {
    generic::repeat<kUnits>([&](auto i) __attribute__((always_inline)) {
      if (i < count) f(i);
    });
  }

  static float* out_row(const LinearTile& job, const TokenUnits& units, std::size_t unit, std::size_t row) noexcept {
    return job.out + (units.first(unit) + row) * job.out_stride;
  }

  /// What the slabs before have summed up.
  template <int kTile>
  static void load_results(const LinearTile& job, const TokenUnits& units, std::size_t unit, const Slab& slab, Scratch& scratch) noexcept {
    if (slab.first == 0) {
      Tiles::zero<kTile>();
    } else if (units.tokens_of(unit) == units.rows()) {
      Tiles::load<kTile>(out_row(job, units, unit, 0), job.out_stride * sizeof(float));
    } else {
      for (std::size_t r = 0; r < units.tokens_of(unit); ++r) V::store(scratch.results[r], V::loadu(out_row(job, units, unit, r)));
      Tiles::load<kTile>(scratch.results, kTileRowBytes);
    }
  }

  template <int kTile>
  static void store_results(const LinearTile& job, const TokenUnits& units, std::size_t unit, Scratch& scratch) noexcept {
    if (units.tokens_of(unit) == units.rows()) {
      Tiles::store<kTile>(out_row(job, units, unit, 0), job.out_stride * sizeof(float));
      return;
    }
    Tiles::store<kTile>(scratch.results, kTileRowBytes);
    for (std::size_t r = 0; r < units.tokens_of(unit); ++r) V::storeu(out_row(job, units, unit, r), V::load(scratch.results[r]));
  }
};

}  // namespace quench::amx
