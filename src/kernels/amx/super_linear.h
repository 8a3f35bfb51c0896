#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/amx/folding.h"
#include "kernels/amx/token_units.h"
#include "kernels/generic/blocks.h"
#include "kernels/generic/raw_blocks.h"
#include "kernels/generic/repeat.h"

namespace quench::amx {

/// A super-block of 16 rows with its scales folded in: 4 or 8 KiB, which stay in L1 while all tokens pass over them.
template <class View, class Folding>
struct FoldedBlock {
  static constexpr std::size_t kPairs = 256 / View::kSubElements / 2;

  alignas(64) std::byte planes[Folding::kPlanes][kPlaneBytes];
  V::F scale;
  V::F min;
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
    if constexpr (View::kHasMin) min = view.min(0);
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
  // 4 results in flight: a product takes 52 cycles and 16 apart they come, so that 4 chains keep the unit busy.
  static constexpr int kUnits = 4 / Folding::kPlanes;
  static constexpr std::size_t kStepBytes = 64;

 public:
  static void packed(const LinearTile& job) noexcept {
    run(job, [&job](std::size_t block, Block& folded) { folded.fold(View(job.tile, job.columns, block, 0)); });
  }
  template <class RowType, Format kFormat>
  static void raw(const LinearTile& job) noexcept {
    const auto block_bytes = static_cast<std::size_t>(format_info(kFormat).block_bytes);
    generic::RawTile<V, RowType> decoded;
    run(job, [&](std::size_t block, Block& folded) {
      decoded.decode(job.tile, block_bytes, block);
      folded.fold(View(decoded, 0));
    });
  }

 private:
  /// Results of the tiles of kUnits units, and the activations of units that are no even rows.
  struct Scratch {
    alignas(64) std::byte results[2][4][kTileBytes];
    alignas(64) std::byte copies[kUnits][kTileRows][256];
  };

  template <class Fold>
  static void run(const LinearTile& job, const Fold& fold) noexcept {
    const TokenUnits units{job.n_tokens};
    configure_for<kStepBytes>(units);
    Block folded;
    Scratch scratch;
    const std::size_t steps = (units.count() + kUnits - 1) / kUnits;
    for (std::size_t block = 0; block < job.columns / 256; ++block) {
      fold(block, folded);
      // The floats of a step run while the tiles of the next one are multiplied.
      for (std::size_t step = 0; step <= steps; ++step) {
        if (step < steps) multiply(job, units, step * kUnits, block, folded, scratch, scratch.results[step % 2]);
        if (step > 0) add(job, units, (step - 1) * kUnits, block, folded, scratch.results[(step - 1) % 2]);
      }
    }
  }

  static void multiply(const LinearTile& job, const TokenUnits& units, std::size_t first_unit, std::size_t block, const Block& folded,
                       Scratch& scratch, std::byte (&results)[4][kTileBytes]) noexcept {
    const auto count = static_cast<int>(std::min<std::size_t>(kUnits, units.count() - first_unit));
    ActivationRows x[kUnits];
    for (int i = 0; i < count; ++i) {
      x[i] = activation_rows<std::int8_t>(job, units, first_unit + static_cast<std::size_t>(i), 256 * block, 256, scratch.copies[i]);
    }
    each_result(count, [](auto, auto, auto result) __attribute__((always_inline)) { Tiles::zero<result>(); });
    for (std::size_t k = 0; k < 256; k += kStepBytes) {
      generic::repeat<Folding::kPlanes>([&](auto plane) __attribute__((always_inline)) {
        Tiles::load<kWeights + plane>(folded.planes[plane] + k * kTileRows, kTileRowBytes);
      });
      each_result(count, [&](auto i, auto plane, auto result) __attribute__((always_inline)) {
        constexpr int kX = kActivations + i % 2;
        if constexpr (plane == 0) x[i].template load<kX>(k);
        Folding::template dot<plane, result, kX, kWeights + plane>();
      });
    }
    each_result(count,
                [&](auto, auto, auto result) __attribute__((always_inline)) { Tiles::store<result>(results[result], kTileRowBytes); });
  }

  /// f(unit, plane, result register) with constants, for the first `count` units.
  template <class Function>
  [[gnu::always_inline]] static void each_result(int count, const Function& f) noexcept {
    generic::repeat<kUnits>([&](auto i) __attribute__((always_inline)) {
      if (i >= count) return;
      generic::repeat<Folding::kPlanes>([&](auto plane) __attribute__((always_inline)) {
        f(i, plane, std::integral_constant<int, kResults + i * Folding::kPlanes + plane>{});
      });
    });
  }

  static void add(const LinearTile& job, const TokenUnits& units, std::size_t first_unit, std::size_t block, const Block& folded,
                  const std::byte (&results)[4][kTileBytes]) noexcept {
    const std::size_t count = std::min<std::size_t>(kUnits, units.count() - first_unit);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t r = units.shared(first_unit + i); r < units.rows(); ++r) {
        const V::I sum = Folding::sum(results[i * Folding::kPlanes] + r * kTileRowBytes);
        add_token(job, units.first(first_unit + i) + r, block, folded, sum);
      }
    }
  }

  [[gnu::always_inline]] static void add_token(const LinearTile& job, std::size_t token, std::size_t block, const Block& folded,
                                               V::I sum) noexcept {
    float* out = job.out + token * job.out_stride;
    const std::size_t row = job.first_token + token;
    const V::F x_scale = V::set1(job.x->scales_row(row)[block]);
    V::F acc = block == 0 ? V::zero() : V::loadu(out);
    acc = V::fma(V::mul(folded.scale, x_scale), V::to_float(sum), acc);
    if constexpr (View::kHasMin) {
      const V::I mins = min_sum(folded, job.x->sums_row(row) + block * (256 / kSumElements));
      acc = V::fma(V::neg(V::mul(folded.min, x_scale)), V::to_float(mins), acc);
    }
    V::storeu(out, acc);
  }

  /// T: the minima with the sums of the quants, in pairs.
  [[gnu::always_inline]] static V::I min_sum(const Block& folded, const std::int16_t* sums) noexcept {
    std::int16_t sums_of_32[8];
    if constexpr (View::kSubElements == 32) {
      V::add_pairs(sums, sums_of_32);
      sums = sums_of_32;
    }
    V::I mins = V::zero_i();
    for (std::size_t p = 0; p < Block::kPairs; ++p) mins = V::pair_dot(mins, folded.min_pairs[p], sums + 2 * p);
    return mins;
  }
};

}  // namespace quench::amx
