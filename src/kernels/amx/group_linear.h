#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/amx/lanes.h"
#include "kernels/amx/token_units.h"
#include "kernels/generic/blocks.h"
#include "kernels/generic/repeat.h"

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

 public:
  static void tile(const LinearTile& job) noexcept {
    const TokenUnits units{job.n_tokens};
    configure_for<kElements>(units);
    Slab slab;
    Unit unit;
    const std::size_t groups = job.columns / kElements;
    for (std::size_t first = 0; first < groups; first += kSlabGroups) {
      slab.unpack(job, first, std::min(kSlabGroups, groups - first));
      for (std::size_t u = 0; u < units.count(); ++u) run_unit(job, units, u, slab, unit);
    }
  }

 private:
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

  /// What is gathered of a unit's tokens, with fixed strides, so that one register addresses all of it.
  struct Unit {
    float scales[kTileRows][kScales] = {};
    float sums[View::kHasMin ? kTileRows : 1][kScales] = {};  ///< scale x sum of the 32 quants
    alignas(64) std::int32_t dots[2][kTileRows][kTileRows] = {};
    alignas(64) std::byte copy[kTileRows][kSlabColumns];

    void load(const LinearTile& job, std::size_t first_token, std::size_t rows, const Slab& slab) noexcept {
      const std::size_t k = slab.column();
      const std::size_t count = slab.groups * kElements / 32;
      for (std::size_t r = 0; r < rows; ++r) {
        const float* row = job.x->scales_row(job.first_token + first_token + r) + k / 32;
        for (std::size_t i = 0; i < count; ++i) scales[r][i] = row[i];
        if constexpr (View::kHasMin) {
          const std::int16_t* halves = job.x->sums_row(job.first_token + first_token + r) + k / kSumElements;
          for (std::size_t i = 0; i < count; ++i) sums[r][i] = row[i] * static_cast<float>(halves[2 * i] + halves[2 * i + 1]);
        }
      }
    }
  };

  static void run_unit(const LinearTile& job, const TokenUnits& units, std::size_t u, const Slab& slab, Unit& unit) noexcept {
    unit.load(job, units.first(u), units.rows(), slab);
    const ActivationRows x = activation_rows<std::int8_t>(job, units, u, slab.column(), slab.groups * kElements, unit.copy);
    // The results of half a unit need half the registers, and half the work after the product.
    if (units.rows() <= 8) {
      run_rows<8>(job, units, u, 0, slab, x, unit);
    } else if (units.shared(u) >= 8) {
      run_rows<8>(job, units, u, 8, slab, x, unit);
    } else {
      run_rows<16>(job, units, u, 0, slab, x, unit);
    }
  }

  template <int kRegister>
  [[gnu::always_inline]] static void multiply(const Slab& slab, std::size_t group, const ActivationRows& x, Unit& unit) noexcept {
    Tiles::zero<kResults + kRegister>();
    Tiles::load<kWeights + kRegister>(slab.quants[group], kTileRowBytes);
    x.load<kActivations + kRegister>(group * kElements);
    Tiles::dot_signed<kResults + kRegister, kActivations + kRegister, kWeights + kRegister>();
    Tiles::store<kResults + kRegister>(unit.dots[kRegister], kTileRowBytes);
  }

  /// 16 accumulators, the scale, and two temporaries: 19 of 32 registers. The product of a group is asked for before the floats of the
  /// group before are computed: it takes about 52 cycles from operands to result, and the floats of 16 tokens about 24.
  template <int kTokens>
  static void run_rows(const LinearTile& job, const TokenUnits& units, std::size_t u, std::size_t base, const Slab& slab,
                       const ActivationRows& x, Unit& unit) noexcept {
    float* out = job.out + (units.first(u) + base) * job.out_stride;
    const std::size_t begin = units.shared(u) > base ? units.shared(u) - base : 0;
    const std::size_t end = std::min<std::size_t>(kTokens, units.rows() - base);
    F acc[kTokens];
    generic::repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
      acc[t] = slab.first > 0 && t >= begin && t < end ? V::loadu(out + t * job.out_stride) : V::zero();
    });
    multiply<0>(slab, 0, x, unit);
    for (std::size_t g = 0; g < slab.groups; g += 2) {
      if (g + 1 < slab.groups) multiply<1>(slab, g + 1, x, unit);
      add_group<kTokens>(slab, g, base, unit, unit.dots[0][base], acc);
      if (g + 1 == slab.groups) break;
      if (g + 2 < slab.groups) multiply<0>(slab, g + 2, x, unit);
      add_group<kTokens>(slab, g + 1, base, unit, unit.dots[1][base], acc);
    }
    generic::repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
      if (t >= begin && t < end) V::storeu(out + t * job.out_stride, acc[t]);
    });
  }

  template <int kTokens>
  [[gnu::always_inline]] static void add_group(const Slab& slab, std::size_t group, std::size_t base, const Unit& unit,
                                               const std::int32_t* dots, F (&acc)[kTokens]) noexcept {
    const F scale = V::load(slab.scales[group]);
    const float* x_scales = unit.scales[base] + group * kElements / 32;
    generic::repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
      const F both = V::mul(scale, V::set1(x_scales[t * kScales]));
      acc[t] = V::fma(both, V::to_float(V::loadu_i(dots + t * kTileRows)), acc[t]);
    });
    if constexpr (View::kHasMin) {
      const F min = V::load(slab.mins[group]);
      const float* x_sums = unit.sums[base] + group * kElements / 32;
      generic::repeat<kTokens>([&](auto t) __attribute__((always_inline)) { acc[t] = V::fma(min, V::set1(x_sums[t * kScales]), acc[t]); });
    }
  }
};

}  // namespace quench::amx
