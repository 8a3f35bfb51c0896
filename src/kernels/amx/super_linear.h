#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/amx/folding.h"
#include "kernels/amx/token_units.h"
#include "kernels/generic/blocks.h"
#include "kernels/generic/raw_blocks.h"
#include "kernels/generic/repeat.h"
#include "kernels/generic/weights_ahead.h"

namespace quench::amx {

/// A super-block of 16 rows with its scales folded in: 4 or 8 KiB, which stay in L1 while all tokens pass over them.
template <class View, class Folding>
struct FoldedBlock {
  static constexpr std::size_t kPairs = 256 / View::kSubElements / 2;

  alignas(64) std::byte planes[Folding::kPlanes][kPlaneBytes];
  V::F scale;
  V::F negated_min;
  V::I min_pairs[kPairs];

  void fold(const View& view) noexcept {
    constexpr std::size_t kSubBytes = View::kSubElements * kTileRows;
    for (std::size_t p = 0; p < kPairs; ++p) {
      const V::I scales = view.scale_pair(p, 0);
      fold_sub(view.even_chunks(p), Folding::scale(V::lower_words(scales)), planes[0] + 2 * p * kSubBytes);
      fold_sub(view.odd_chunks(p), Folding::scale(V::upper_words(scales)), planes[0] + (2 * p + 1) * kSubBytes);
      if constexpr (View::kHasMin) min_pairs[p] = view.min_pair(p, 0);
    }
    scale = view.scale(0);
    if constexpr (View::kHasMin) negated_min = V::neg(view.min(0));
  }

 private:
  template <class Chunks>
  [[gnu::always_inline]] static void fold_sub(const Chunks& chunks, const typename Folding::Scale& by, std::byte* line) noexcept {
    generic::repeat<View::kSubElements / 4>([&](auto c) __attribute__((always_inline)) {
      Folding::fold(chunks.template get<c>(0), by, line + c * static_cast<int>(tiles::kChunkBytes));
    });
  }
};

/// Formats of super-blocks.
template <class View, class Folding>
class SuperLinear {
  using Block = FoldedBlock<View, Folding>;
  using F = V::F;
  static constexpr int kPlanes = Folding::kPlanes;
  static constexpr int kMaxTiles = 2;  ///< that share the loads of activations: four results
  static constexpr int kStepBytes = 64;
  static constexpr int kParts = 256 / kStepBytes;
  static constexpr std::size_t kSumRow = kMaxTiles * kTileRows;
  // Their sums over all of k are 64 KiB, a small part of L2 (2 MiB on every processor with tiles).
  static constexpr std::size_t kMaxUnits = 32;

 public:
  static void packed(const LinearTile& job) noexcept {
    run(job, [&job](const std::byte* tile, std::size_t block, Block& folded) { folded.fold(View(tile, job.columns, block, 0)); });
  }
  template <class RowType, Format kFormat>
  static void raw(const LinearTile& job) noexcept {
    const auto block_bytes = static_cast<std::size_t>(format_info(kFormat).block_bytes);
    generic::RawTile<V, RowType> decoded;
    run(job, [&](const std::byte* tile, std::size_t block, Block& folded) {
      decoded.decode(tile, block_bytes, block);
      folded.fold(View(decoded, 0));
    });
  }

 private:
  /// Some units with some tiles.
  struct Part {
    const LinearTile& job;
    TokenUnits units;
    std::size_t first_unit;
    std::size_t n_units;
    std::size_t first_tile;
    float* out;  ///< of the first tile, and of token 0
  };

  /// A unit's tokens in a block, as UnitScales has them.
  struct Unit {
    std::size_t index;   ///< in the part
    std::size_t first;   ///< token
    std::size_t tokens;  ///< that are real
    ActivationRows x;
    const float* scales;        ///< [16]
    const std::int16_t* pairs;  ///< [Block::kPairs][16][2]
  };

  struct Scratch {
    alignas(64) float sums[kMaxUnits][kTileRows][kSumRow];
    alignas(64) std::int32_t results[kMaxTiles][kPlanes][kTileRows][kTileRows];
    alignas(64) float zeros[kSumRow] = {};
    // Of a unit that is not in place; its floats come while the next unit is multiplied.
    alignas(64) float scales[2][kTileRows];
    alignas(64) std::int16_t pairs[2][View::kHasMin ? Block::kPairs : 1][kTileRows][2];
    alignas(64) std::byte copy[kTileRows][256];

    // Memory as it is, but for the zeros.
    Scratch() noexcept {}
  };

  template <class Fold>
  static void run(const LinearTile& job, const Fold& fold) noexcept {
    const TokenUnits units{job.n_tokens};
    configure_for<kStepBytes>(units);
    Scratch scratch;
    for (std::size_t u = 0; u < units.count(); u += kMaxUnits) {
      Part part{job, units, u, std::min(kMaxUnits, units.count() - u), 0, job.out};
      for (; part.first_tile + kMaxTiles <= job.n_tiles; part.first_tile += kMaxTiles, part.out += kSumRow) {
        run_part<kMaxTiles>(part, fold, scratch);
      }
      for (; part.first_tile < job.n_tiles; ++part.first_tile, part.out += kTileRows) run_part<1>(part, fold, scratch);
    }
  }

  template <int kTiles, class Fold>
  static void run_part(const Part& part, const Fold& fold, Scratch& scratch) noexcept {
    Block blocks[kTiles];
    const std::byte* tile = part.job.tile + part.first_tile * part.job.tile_bytes;
    const std::size_t n_blocks = part.job.columns / 256;
    generic::WeightsAhead ahead(tile + kTiles * part.job.tile_bytes, kTiles * part.job.tile_bytes,
                                n_blocks * (kTiles + part.n_units - 1 + kParts));
    for (std::size_t block = 0; block < n_blocks; ++block) {
      for (std::size_t i = 0; i < kTiles; ++i) {
        ahead.step();
        fold(tile + i * part.job.tile_bytes, block, blocks[i]);
      }
      // The results of half a unit take half the work after the product.
      if (part.units.rows() <= kTileRows / 2) {
        run_block<kTiles, kTileRows / 2>(part, block, blocks, ahead, scratch);
      } else {
        run_block<kTiles, kTileRows>(part, block, blocks, ahead, scratch);
      }
    }
  }

  /// Tiles are multiplied and stored in order: the results of a unit are stored among the first products of the next one, and its floats
  /// go beside the others.
  template <int kTiles, std::size_t kTokens>
  static void run_block(const Part& part, std::size_t block, const Block (&blocks)[kTiles], generic::WeightsAhead& ahead,
                        Scratch& scratch) noexcept {
    Unit next = unit_of(part, 0, block, scratch);
    repeat_parts([&](auto k) __attribute__((always_inline)) { multiply<k, false>(next.x, blocks, scratch); });
    for (std::size_t u = 0; u < part.n_units; ++u) {
      const Unit unit = next;
      Floats<kTiles, kTokens> floats(part, unit, block, scratch);
      if (u + 1 < part.n_units) {
        next = unit_of(part, u + 1, block, scratch);
        ahead.step();
        repeat_parts([&](auto k) __attribute__((always_inline)) {
          multiply<k, true>(next.x, blocks, scratch);
          floats.template add<k>(blocks, unit, scratch);
        });
      } else {
        generic::repeat<kTiles>([&](auto i) __attribute__((always_inline)) { store<i>(scratch); });
        repeat_parts([&](auto k) __attribute__((always_inline)) {
          ahead.step();
          floats.template add<k>(blocks, unit, scratch);
        });
      }
      floats.finish(part, unit, scratch);
    }
  }

  template <class Function>
  [[gnu::always_inline]] static void repeat_parts(const Function& f) noexcept {
    generic::repeat<kParts>(f);
  }

  static Unit unit_of(const Part& part, std::size_t index, std::size_t block, Scratch& scratch) noexcept {
    const LinearTile& job = part.job;
    const std::size_t u = part.first_unit + index;
    const ActivationRows x = activation_rows<std::int8_t>(job, part.units, u, 256 * block, 256, scratch.copy);
    Unit unit{index, part.units.first(u), part.units.tokens_of(u), x, scratch.scales[u % 2], scratch.pairs[u % 2][0][0]};
    if (units_in_place(job)) {
      const UnitScales in_place = job.x->unit_scales(job.first_token / kTileRows + u);
      unit.scales = in_place.scales + block * kTileRows;
      unit.pairs = (Block::kPairs == 4 ? in_place.pairs_of_32 : in_place.pairs) + block * Block::kPairs * kTileRows * 2;
      return unit;
    }
    for (std::size_t t = 0; t < unit.tokens; ++t) {
      const std::size_t row = job.first_token + unit.first + t;
      scratch.scales[u % 2][t] = job.x->scales_row(row)[block];
      if constexpr (View::kHasMin) {
        const std::int16_t* sums = job.x->sums_row(row) + block * (256 / kSumElements);
        std::int16_t sums_of_32[8];
        if constexpr (View::kSubElements == 32) {
          V::add_pairs(sums, sums_of_32);
          sums = sums_of_32;
        }
        for (std::size_t p = 0; p < Block::kPairs; ++p) std::memcpy(scratch.pairs[u % 2][p][t], sums + 2 * p, sizeof(std::int16_t[2]));
      }
    }
    return unit;
  }

  template <int kTile>
  [[gnu::always_inline]] static void store(Scratch& scratch) noexcept {
    generic::repeat<kPlanes>([&](auto plane) __attribute__((always_inline)) {
      Tiles::store<kResults + kTile * kPlanes + plane>(scratch.results[kTile][plane], kTileRowBytes);
    });
  }

  /// 64 k of a unit. The first of them end the unit before: its results are stored.
  template <int kPart, bool kStores, int kTiles>
  [[gnu::always_inline]] static void multiply(const ActivationRows& x, const Block (&blocks)[kTiles], Scratch& scratch) noexcept {
    constexpr int kX = kActivations + kPart % 2;
    x.template load<kX>(kPart * kStepBytes);
    generic::repeat<kTiles>([&](auto i) __attribute__((always_inline)) {
      generic::repeat<kPlanes>([&](auto plane) __attribute__((always_inline)) {
        constexpr int kResult = kResults + i * kPlanes + plane;
        constexpr int kW = kWeights + (kPlanes * i + plane) % 2;
        Tiles::load<kW>(blocks[i].planes[plane] + kPart * kStepBytes * static_cast<int>(kTileRows), kTileRowBytes);
        if constexpr (kPart == 0) {
          if constexpr (kStores) Tiles::store<kResult>(scratch.results[i][plane], kTileRowBytes);
          Tiles::zero<kResult>();
        }
        Folding::template dot<plane, kResult, kX, kW>();
      });
    });
  }

  /// The floats of a unit, in kParts parts. The sums stay in the scratch until the last block: rows of the output are often a multiple of
  /// 4 KiB apart, in one set of L1.
  template <int kTiles, std::size_t kTokens>
  struct Floats {
    const float* from;
    std::size_t from_stride;
    float* to;
    std::size_t to_stride;
    bool ends_short;  ///< the unit has fewer tokens, and this is its last block

    [[gnu::always_inline]] Floats(const Part& part, const Unit& unit, std::size_t block, Scratch& scratch) noexcept
        : from(scratch.sums[unit.index][0]), from_stride(kSumRow), to(scratch.sums[unit.index][0]), to_stride(kSumRow), ends_short(false) {
      if (block == 0) {
        from = scratch.zeros;
        from_stride = 0;
      }
      if ((block + 1) * 256 < part.job.columns) return;
      ends_short = unit.tokens < kTokens;
      if (ends_short) return;
      to = part.out + unit.first * part.job.out_stride;
      to_stride = part.job.out_stride;
      for (std::size_t t = 0; t < kTokens; ++t) prefetch_to_write(to + (kTokens + t) * to_stride);  // the next unit's
    }

    template <int kPart>
    [[gnu::always_inline]] void add(const Block (&blocks)[kTiles], const Unit& unit, const Scratch& scratch) noexcept {
      // In registers: the compiler must believe that a store changes them in memory.
      F scale[kTiles];
      F negated_min[kTiles];
      V::I min_pairs[kTiles][Block::kPairs];
      for (int i = 0; i < kTiles; ++i) {
        scale[i] = blocks[i].scale;
        if constexpr (!View::kHasMin) continue;
        negated_min[i] = blocks[i].negated_min;
        for (std::size_t p = 0; p < Block::kPairs; ++p) min_pairs[i][p] = blocks[i].min_pairs[p];
      }
      constexpr std::size_t kCount = kTokens / kParts;
#pragma GCC unroll 1
      for (std::size_t t = kPart * kCount; t < (kPart + 1) * kCount; ++t, from += from_stride, to += to_stride) {
        const F x_scale = V::set1(unit.scales[t]);
        generic::repeat<kTiles>([&](auto i) __attribute__((always_inline)) {
          const std::byte* row = reinterpret_cast<const std::byte*>(scratch.results[i][0][t]);
          F sum = V::fma(V::mul(scale[i], x_scale), V::to_float(Folding::sum(row)), V::loadu(from + i * static_cast<int>(kTileRows)));
          if constexpr (View::kHasMin) {
            V::I mins = V::zero_i();
            generic::repeat<static_cast<int>(Block::kPairs)>([&](auto p) __attribute__((always_inline)) {
              mins = V::pair_dot(mins, min_pairs[i][p], unit.pairs + (p * kTileRows + t) * 2);
            });
            sum = V::fma(V::mul(negated_min[i], x_scale), V::small_to_float(mins), sum);
          }
          V::storeu(to + i * static_cast<int>(kTileRows), sum);
        });
      }
    }

    [[gnu::always_inline]] void finish(const Part& part, const Unit& unit, const Scratch& scratch) const noexcept {
      if (!ends_short) return;
      float* rows = part.out + unit.first * part.job.out_stride;
      for (std::size_t t = 0; t < unit.tokens; ++t, rows += part.job.out_stride) {
        for (std::size_t i = 0; i < kTiles * kTileRows; i += V::kN) V::storeu(rows + i, V::load(scratch.sums[unit.index][t] + i));
      }
    }
  };
};

}  // namespace quench::amx
