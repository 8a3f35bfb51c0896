#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/amx/lanes.h"
#include "kernels/amx/token_units.h"
#include "kernels/generic/blocks.h"
#include "kernels/generic/repeat.h"
#include "kernels/generic/weights_ahead.h"

namespace quench::amx {

/// Formats of blocks: a tile product for each group of 32 (nvfp4: 16) elements, then, token by token, the two roundings of the contract.
/// Weights are unpacked to signed bytes, so no bias is left to correct.
template <template <class> class ViewOf>
class GroupLinear {
  using V = WordLanes;
  using F = V::F;
  using View = ViewOf<V>;
  static constexpr std::size_t kElements = View::kElements;
  // 1024 k of 16 rows are 16 KiB of bytes, unpacked once for all tokens: a third of L1 (48 KiB on every processor with tiles), beside the
  // activations and the results that pass by.
  static constexpr std::size_t kSlabColumns = 1024;
  static constexpr std::size_t kSlabGroups = kSlabColumns / kElements;
  static constexpr std::size_t kScales = kSlabColumns / 32;  ///< of a token
  static constexpr int kRegisters = 4;                       ///< results in flight

 public:
  static void tiles(const LinearTile& job) noexcept {
    LinearTile one = job;
    for (std::size_t i = 0; i < job.n_tiles; ++i, one.tile += job.tile_bytes, one.out += kTileRows) tile(one);
  }

 private:
  static void tile(const LinearTile& job) noexcept {
    const TokenUnits units{job.n_tokens};
    configure_for<kElements>(units);
    Slab slab;
    Scratch scratch;
    const std::size_t groups = job.columns / kElements;
    generic::WeightsAhead ahead(job.tile + job.tile_bytes, job.tile_bytes,
                                units.count() == 1 ? groups : (groups + kSlabGroups - 1) / kSlabGroups * units.count());
    for (std::size_t first = 0; first < groups; first += kSlabGroups) {
      slab.unpack(job, first, std::min(kSlabGroups, groups - first));
      for (std::size_t u = 0; u < units.count(); ++u) {
        const Unit unit = unit_of(job, units, u, slab, scratch);
        // The results of half a unit need half the registers, and half the work after the product.
        if (unit.tokens <= 8) {
          run_unit<8>(job, units, slab, unit, ahead, scratch);
        } else {
          run_unit<16>(job, units, slab, unit, ahead, scratch);
        }
      }
    }
  }

  struct Slab {
    std::size_t first;
    std::size_t groups;
    alignas(64) std::byte quants[kSlabGroups][View::kChunks][kTileRowBytes];
    alignas(64) float scales[kSlabGroups][kTileRows];
    alignas(64) float mins[View::kHasMin ? kSlabGroups : 1][kTileRows];

    [[nodiscard]] std::size_t column() const noexcept { return first * kElements; }

    void unpack(const LinearTile& job, std::size_t first_group, std::size_t n_groups) noexcept {
      first = first_group;
      groups = n_groups;
      for (std::size_t g = 0; g < groups; ++g) {
        const View view(job.tile, job.columns, first + g, 0);
        const auto chunks = view.chunks();
        generic::repeat<View::kChunks>([&](auto c) __attribute__((always_inline)) {
          V::store_bytes(quants[g][c], V::subtract_bytes(chunks.template get<c>(0), V::set1_bytes(View::kBias)));
        });
        V::store(scales[g], view.scale(0));
        if constexpr (View::kHasMin) V::store(mins[g], view.min(0));
      }
    }
  };

  /// A unit's tokens over the slab: scales and scale x sum as UnitScales has them.
  struct Unit {
    std::size_t first;   ///< token
    std::size_t tokens;  ///< that are real
    ActivationRows x;
    const float* scales;  ///< [32 columns][16]
    const float* sums;
  };

  struct Scratch {
    alignas(64) std::int32_t dots[kRegisters][kTileRows][kTileRows];
    // Of a unit that is not in place.
    alignas(64) float scales[kScales][kTileRows];
    alignas(64) float sums[View::kHasMin ? kScales : 1][kTileRows];
    alignas(64) std::byte copy[kTileRows][kSlabColumns];
  };

  static Unit unit_of(const LinearTile& job, const TokenUnits& units, std::size_t u, const Slab& slab, Scratch& scratch) noexcept {
    const std::size_t first = units.first(u);
    const ActivationRows x = activation_rows<std::int8_t>(job, units, u, slab.column(), slab.groups * kElements, scratch.copy);
    Unit unit{first, units.tokens_of(u), x, scratch.scales[0], scratch.sums[0]};
    if (units_in_place(job)) {
      const UnitScales in_place = job.x->unit_scales(job.first_token / kTileRows + u);
      unit.scales = in_place.scales + slab.column() / 32 * kTileRows;
      unit.sums = in_place.sums + slab.column() / 32 * kTileRows;
    } else {
      gather(job, unit, slab, scratch);
    }
    return unit;
  }

  static void gather(const LinearTile& job, const Unit& unit, const Slab& slab, Scratch& scratch) noexcept {
    const std::size_t k = slab.column();
    const std::size_t count = slab.groups * kElements / 32;
    for (std::size_t t = 0; t < unit.tokens; ++t) {
      const std::size_t row = job.first_token + unit.first + t;
      const float* scales = job.x->scales_row(row) + k / 32;
      for (std::size_t i = 0; i < count; ++i) scratch.scales[i][t] = scales[i];
      if constexpr (View::kHasMin) {
        const std::int16_t* halves = job.x->sums_row(row) + k / kSumElements;
        for (std::size_t i = 0; i < count; ++i) scratch.sums[i][t] = scales[i] * static_cast<float>(halves[2 * i] + halves[2 * i + 1]);
      }
    }
  }

  /// 16 accumulators, scales and temporaries: 20 of 32 registers. Tiles are multiplied and stored in order, so a store that follows its own
  /// product waits for it and holds up the next: the product of group g, the store of g - 1 and the floats of g - 2 go side by side.
  /// Next weights are asked for once a unit, or, by a unit that is alone, once a group: more than once a unit costs the others 15 %.
  template <int kTokens>
  static void run_unit(const LinearTile& job, const TokenUnits& units, const Slab& slab, const Unit& unit, generic::WeightsAhead& ahead,
                       Scratch& scratch) noexcept {
    if (units.count() == 1) return run_groups<kTokens, true>(job, slab, unit, ahead, scratch);
    ahead.step();
    run_groups<kTokens, false>(job, slab, unit, ahead, scratch);
  }

  template <int kTokens, bool kAlone>
  static void run_groups(const LinearTile& job, const Slab& slab, const Unit& unit, generic::WeightsAhead& ahead,
                         Scratch& scratch) noexcept {
    float* out = job.out + unit.first * job.out_stride;
    F acc[kTokens];
    generic::repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
      acc[t] = slab.first > 0 && t < unit.tokens ? V::loadu(out + t * job.out_stride) : V::zero();
    });
    multiply<0>(slab, 0, unit);
    if (slab.groups > 1) multiply<1>(slab, 1, unit);
    Tiles::store<kResults>(scratch.dots[0], kTileRowBytes);
    for (std::size_t first = 0; first < slab.groups; first += kRegisters) {
      generic::repeat<kRegisters>([&](auto i) __attribute__((always_inline)) {
        const std::size_t g = first + i;
        if (g >= slab.groups) return;
        if (i % 2 == 0) prefetch_to_write(out + (kTileRows + g / 2 % kTileRows) * job.out_stride);  // of the next unit
        if constexpr (kAlone) ahead.step();
        if (g + 2 < slab.groups) multiply<(i + 2) % kRegisters>(slab, g + 2, unit);
        if (g + 1 < slab.groups) Tiles::store<kResults + (i + 1) % kRegisters>(scratch.dots[(i + 1) % kRegisters], kTileRowBytes);
        add_group<kTokens>(slab, g, unit, scratch.dots[i], acc);
      });
    }
    generic::repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
      if (t < unit.tokens) V::storeu(out + t * job.out_stride, acc[t]);
    });
  }

  template <int kRegister>
  [[gnu::always_inline]] static void multiply(const Slab& slab, std::size_t group, const Unit& unit) noexcept {
    Tiles::zero<kResults + kRegister>();
    Tiles::load<kWeights + kRegister % 2>(slab.quants[group], kTileRowBytes);
    unit.x.template load<kActivations + kRegister % 2>(group * kElements);
    Tiles::dot_signed<kResults + kRegister, kActivations + kRegister % 2, kWeights + kRegister % 2>();
  }

  template <int kTokens>
  [[gnu::always_inline]] static void add_group(const Slab& slab, std::size_t group, const Unit& unit,
                                               const std::int32_t (&dots)[kTileRows][kTileRows], F (&acc)[kTokens]) noexcept {
    const std::size_t line = group * kElements / 32 * kTileRows;
    const F scale = V::load(slab.scales[group]);
    const float* x_scales = unit.scales + line;
    __builtin_prefetch(x_scales + 4 * kTileRows);
    generic::repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
      const F both = V::mul(scale, V::set1(x_scales[t]));
      acc[t] = V::fma(both, V::small_to_float(V::loadu_i(dots[t])), acc[t]);
    });
    if constexpr (View::kHasMin) {
      const F min = V::load(slab.mins[group]);
      const float* x_sums = unit.sums + line;
      generic::repeat<kTokens>([&](auto t) __attribute__((always_inline)) { acc[t] = V::fma(min, V::set1(x_sums[t]), acc[t]); });
    }
  }
};

}  // namespace quench::amx
