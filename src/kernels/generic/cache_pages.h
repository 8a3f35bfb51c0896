#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/attention.h"
#include "kernels/generic/query_sums.h"
#include "kernels/generic/repeat.h"

/// The types of the cache over lanes V, as kernels/generic/attention.h uses them: how a key and a value are stored, how a block of queries
/// is scored against strips of keys, what a value is multiplied with.
namespace quench::generic {

/// A page's softmax weights of a block of queries: [kQueries][64].
template <std::size_t kQueries>
using PageWeights = float[kQueries][kPagePositions];

/// Pages of plain numbers, Number being F16 or float: keys [64/16][head_dim][16], values [64][head_dim].
template <class V, class Number>
struct NumberPages {
  using F = typename V::F;
  /// Channels that are multiplied with one weight: all of a head.
  static constexpr std::size_t kWeightChannels = kMaxHeadDim;
  static constexpr std::size_t kStripRegisters = kStripPositions / V::kN;
  static constexpr bool kWidens = false;

  [[gnu::always_inline]] static F load(const Number* p) noexcept {
    if constexpr (sizeof(Number) == sizeof(float)) {
      return V::loadu(p);
    } else {
      return V::load_f16(p);
    }
  }

  /// Scores of kStrips strips from `strip` on.
  template <std::size_t kQueries, std::size_t kStrips>
  static void score(const AttendPage& page, const std::size_t (&queries)[kQueries], std::size_t strip,
                    PageWeights<kQueries>& scores) noexcept {
    constexpr std::size_t kRegisters = kStrips * kStripRegisters;
    const std::size_t head_dim = page.head_dim;
    const float* query[kQueries];
    for (std::size_t r = 0; r < kQueries; ++r) query[r] = page.queries + queries[r] * page.query_stride;
    const Number* keys = reinterpret_cast<const Number*>(page.keys) + strip * head_dim * kStripPositions;
    QuerySums<V, kQueries, kRegisters> sums;
    for (std::size_t d = 0; d < head_dim; ++d, keys += kStripPositions) {
      sums.template add_all<0, kRegisters>(
          [&](std::size_t r) QUENCH_INLINE { return query[r][d]; },
          [&](std::size_t c)
              QUENCH_INLINE { return load(keys + c / kStripRegisters * head_dim * kStripPositions + c % kStripRegisters * V::kN); });
    }
    QUENCH_UNROLLED for (std::size_t r = 0; r < kQueries; ++r) {
      QUENCH_UNROLLED for (std::size_t c = 0; c < kRegisters; ++c) {
        V::store(scores[r] + strip * kStripPositions + c * V::kN, sums.of[r][c]);
      }
    }
  }

  /// The weights that values are multiplied with: the softmax weights themselves.
  template <std::size_t kQueries>
  struct Weights {
    const PageWeights<kQueries>& softmax;
    Weights(const AttendPage&, const PageWeights<kQueries>& weights) noexcept : softmax(weights) {}
    static constexpr std::size_t kQueryStride = kPagePositions;
    static constexpr std::size_t kBlockStride = 0;
    /// Of query 0 and the channels from d on; the other queries and blocks of kWeightChannels lie at fixed distances.
    [[gnu::always_inline]] const float* at(std::size_t) const noexcept { return softmax[0]; }
  };

  [[gnu::always_inline]] static F load_value(const AttendPage& page, std::size_t p, std::size_t d, std::size_t width) noexcept {
    const Number* value = reinterpret_cast<const Number*>(page.values) + p * page.head_dim + d;
    if (V::kN <= 8 || width == V::kN) return load(value);
    // A head whose channels end inside a register; head_dim is a multiple of 8, so only 16 lanes come here.
    Number numbers[V::kN] = {};
    for (std::size_t i = 0; i < width; ++i) numbers[i] = value[i];
    return load(numbers);
  }
};

template <class V>
struct F16Pages : NumberPages<V, F16> {
  using F = typename V::F;
  using Widened = NumberPages<V, float>;
  static constexpr bool kWidens = true;

  /// The page's parts in f32, in the same order.
  template <std::size_t kMaxChannels>
  struct WidePage {
    alignas(64) float keys[kPagePositions * kMaxChannels];
    alignas(64) float values[kPagePositions * kMaxChannels];

    explicit WidePage(const AttendPage& page) noexcept {
      for (std::size_t i = 0; i < kPagePositions * page.head_dim; i += V::kN) {
        V::store(keys + i, V::load_f16(reinterpret_cast<const F16*>(page.keys) + i));
        V::store(values + i, V::load_f16(reinterpret_cast<const F16*>(page.values) + i));
      }
    }
    void show_to(AttendPage& page) const noexcept {
      page.keys = reinterpret_cast<const std::byte*>(keys);
      page.values = reinterpret_cast<const std::byte*>(values);
    }
  };

  static void store_key(std::byte* page_keys, std::size_t slot, const float* key, std::size_t head_dim) noexcept {
    F16* strip = reinterpret_cast<F16*>(page_keys) + slot / kStripPositions * head_dim * kStripPositions + slot % kStripPositions;
    for (std::size_t d = 0; d < head_dim; d += V::kN) {
      std::uint16_t halves[V::kN];
      const std::size_t count = to_halves(key, d, head_dim, halves);
      for (std::size_t i = 0; i < count; ++i) strip[(d + i) * kStripPositions].bits = halves[i];
    }
  }

  static void store_value(std::byte* page_values, std::size_t slot, const float* value, std::size_t head_dim) noexcept {
    F16* row = reinterpret_cast<F16*>(page_values) + slot * head_dim;
    for (std::size_t d = 0; d < head_dim; d += V::kN) {
      std::uint16_t halves[V::kN];
      const std::size_t count = to_halves(value, d, head_dim, halves);
      for (std::size_t i = 0; i < count; ++i) row[d + i].bits = halves[i];
    }
  }

 private:
  static std::size_t to_halves(const float* row, std::size_t d, std::size_t head_dim, std::uint16_t* halves) noexcept {
    const std::size_t count = head_dim - d < V::kN ? head_dim - d : V::kN;
    const F v = count == V::kN ? V::loadu(row + d) : V::load_partial(row + d, count);
    V::store_f16_saturate(reinterpret_cast<F16*>(halves), v);
    return count;
  }
};

template <class V>
struct WideQ8Pages;

template <class V>
struct Q8Pages {
  using F = typename V::F;
  using Widened = WideQ8Pages<V>;
  static constexpr std::size_t kWeightChannels = kCacheBlockChannels;
  static constexpr bool kWidens = true;

  /// The values' quants in f32, and behind them, as in the page, their scales. Keys are multiplied as they are.
  template <std::size_t kMaxChannels>
  struct WidePage {
    alignas(64) float values[kPagePositions * kMaxChannels + kPagePositions * kMaxChannels / kCacheBlockChannels / 2];

    explicit WidePage(const AttendPage& page) noexcept {
      const std::size_t elements = kPagePositions * page.head_dim;
      for (std::size_t i = 0; i < elements; i += V::kN) V::store(values + i, V::to_float(V::load_i8(page.values + i)));
      std::memcpy(values + elements, scales_of(page.values, page.head_dim), elements / kCacheBlockChannels * sizeof(F16));
    }
    void show_to(AttendPage& page) const noexcept { page.values = reinterpret_cast<const std::byte*>(values); }
  };

  static void store_key(std::byte* page_keys, std::size_t slot, const float* key, std::size_t head_dim) noexcept {
    std::byte* strip = page_keys + slot / kStripPositions * head_dim * kStripPositions + slot % kStripPositions * 2;
    F16* scales = scales_of(page_keys, head_dim) + slot;
    for (std::size_t block = 0; block < head_dim / kCacheBlockChannels; ++block) {
      alignas(32) std::int8_t quants[kCacheBlockChannels];
      scales[block * kPagePositions] = quantize(key + block * kCacheBlockChannels, quants);
      for (std::size_t i = 0; i < kCacheBlockChannels; i += 2) {
        std::byte* place = strip + (block * kCacheBlockChannels + i) * kStripPositions;
        place[0] = static_cast<std::byte>(quants[i]);
        place[1] = static_cast<std::byte>(quants[i + 1]);
      }
    }
  }

  static void store_value(std::byte* page_values, std::size_t slot, const float* value, std::size_t head_dim) noexcept {
    F16* scales = scales_of(page_values, head_dim) + slot;
    auto* row = reinterpret_cast<std::int8_t*>(page_values) + slot * head_dim;
    for (std::size_t block = 0; block < head_dim / kCacheBlockChannels; ++block) {
      scales[block * kPagePositions] = quantize(value + block * kCacheBlockChannels, row + block * kCacheBlockChannels);
    }
  }

  template <std::size_t kQueries, std::size_t kStrips>
  static void score(const AttendPage& page, const std::size_t (&queries)[kQueries], std::size_t strip,
                    PageWeights<kQueries>& scores) noexcept {
    // As many queries at once as a linear layer takes tokens: the work is of the same kind.
    constexpr std::size_t kMost = static_cast<std::size_t>(V::kTokens);
    constexpr std::size_t kParts = (kQueries + kMost - 1) / kMost;
    // Where a register holds a strip, two share the loads of queries.
    constexpr std::size_t kAtOnce = V::kN == kStripPositions && kStrips % 2 == 0 ? 2 : 1;
    for (std::size_t s = strip; s < strip + kStrips; s += kAtOnce) {
      repeat<static_cast<int>(kParts)>([&](auto part) __attribute__((always_inline)) {
        constexpr std::size_t kFirst = kQueries * part / kParts;
        constexpr std::size_t kLast = kQueries * (part + 1) / kParts;
        score_strips<kQueries, kFirst, kLast - kFirst, kAtOnce>(page, queries, s, scores);
      });
    }
  }

  static void quantize_queries(const float* x, std::size_t n, std::int16_t* quants, float* scales) noexcept {
    constexpr float kMost = 32767.0f;
    for (std::size_t at = 0; at < n; at += kCacheBlockChannels) {
      const float d = largest(x + at) / kMost;
      scales[at / kCacheBlockChannels] = d;
      for (std::size_t i = at; i < at + kCacheBlockChannels; i += V::kN) {
        alignas(64) std::int32_t lanes[V::kN];
        V::storeu_i(lanes, quants_of(x + i, V::set1(d), kMost));
        for (std::size_t j = 0; j < V::kN; ++j) quants[i + j] = static_cast<std::int16_t>(lanes[j]);
      }
    }
  }

  /// Softmax weights times the scales of the values, by block of channels.
  template <std::size_t kQueries>
  struct Weights {
    alignas(64) float scaled[kQueries][kMaxHeadDim / kCacheBlockChannels][kPagePositions];

    Weights(const AttendPage& page, const PageWeights<kQueries>& weights) noexcept
        : Weights(page, weights, scales_of(page.values, page.head_dim)) {}
    Weights(const AttendPage& page, const PageWeights<kQueries>& weights, const F16* scales) noexcept {
      for (std::size_t block = 0; block < page.head_dim / kCacheBlockChannels; ++block, scales += kPagePositions) {
        for (std::size_t p = 0; p < kPagePositions; p += V::kN) {
          const F scale = V::load_f16(scales + p);
          QUENCH_UNROLLED for (std::size_t r = 0; r < kQueries; ++r) {
            V::store(scaled[r][block] + p, V::mul(V::load(weights[r] + p), scale));
          }
        }
      }
    }
    static constexpr std::size_t kQueryStride = kMaxHeadDim / kCacheBlockChannels * kPagePositions;
    static constexpr std::size_t kBlockStride = kPagePositions;
    [[gnu::always_inline]] const float* at(std::size_t d) const noexcept { return scaled[0][d / kCacheBlockChannels]; }
  };

  [[gnu::always_inline]] static F load_value(const AttendPage& page, std::size_t p, std::size_t d, std::size_t) noexcept {
    return V::to_float(V::load_i8(page.values + p * page.head_dim + d));
  }

 private:
  template <class Byte>
  [[gnu::always_inline]] static auto* scales_of(Byte* page, std::size_t head_dim) noexcept {
    if constexpr (std::is_const_v<Byte>) {
      return reinterpret_cast<const F16*>(page + kPagePositions * head_dim);
    } else {
      return reinterpret_cast<F16*>(page + kPagePositions * head_dim);
    }
  }

  template <std::size_t kQueries, std::size_t kFirst, std::size_t kCount, std::size_t kStrips>
  [[gnu::always_inline]] static void score_strips(const AttendPage& page, const std::size_t (&queries)[kQueries], std::size_t strip,
                                                  PageWeights<kQueries>& scores) noexcept {
    constexpr std::size_t kSubs = kStrips > 1 ? kStrips : static_cast<std::size_t>(V::sub_tiles(static_cast<int>(kCount)));
    const std::size_t sub_bytes = kStrips > 1 ? kStripPositions * page.head_dim : V::kN * 2;
    const std::size_t head_dim = page.head_dim;
    const std::int16_t* query[kCount];
    const float* query_scales[kCount];
    for (std::size_t t = 0; t < kCount; ++t) {
      query[t] = page.query_quants + queries[kFirst + t] * head_dim;
      query_scales[t] = page.query_scales + queries[kFirst + t] * (head_dim / kCacheBlockChannels);
    }
    for (std::size_t sub = 0; sub < kStrips * kStripPositions / V::kN; sub += kSubs) {
      const std::size_t position = strip * kStripPositions + sub * V::kN;
      const std::byte* keys = page.keys + strip * kStripPositions * head_dim + sub * sub_bytes;
      const F16* scales = scales_of(page.keys, head_dim) + position;
      F acc[kSubs][kCount];
      for_registers<kSubs, kCount>([&](auto s, auto t) __attribute__((always_inline)) { acc[s][t] = V::zero(); });
      for (std::size_t block = 0; block < head_dim / kCacheBlockChannels; ++block, scales += kPagePositions) {
        typename V::I dots[kSubs][kCount];
        dot_block<kSubs, kCount>(keys + block * kCacheBlockChannels * kStripPositions, sub_bytes, query, block * kCacheBlockChannels, dots);
        repeat<kSubs>([&](auto s) __attribute__((always_inline)) {
          const F scale = V::load_f16(scales + s * V::kN);
          repeat<kCount>([&](auto t) __attribute__((always_inline)) {
            acc[s][t] = V::fma(V::mul(scale, V::set1(query_scales[t][block])), V::to_float(dots[s][t]), acc[s][t]);
          });
        });
      }
      for_registers<kSubs, kCount>([&](auto s, auto t)
                                       __attribute__((always_inline)) { V::store(scores[kFirst + t] + position + s * V::kN, acc[s][t]); });
    }
  }

  /// 32 channels, two at a time: a position's pair of keys is widened once for all queries.
  template <std::size_t kSubs, std::size_t kCount>
  [[gnu::always_inline]] static void dot_block(const std::byte* keys, std::size_t sub_bytes, const std::int16_t* const (&query)[kCount],
                                               std::size_t d, typename V::I (&dots)[kSubs][kCount]) noexcept {
    for_registers<kSubs, kCount>([&](auto s, auto t) __attribute__((always_inline)) { dots[s][t] = V::zero_i(); });
    for (std::size_t i = 0; i < kCacheBlockChannels; i += 2, keys += 2 * kStripPositions) {
      typename V::I pairs[kSubs];
      repeat<kSubs>([&](auto s) __attribute__((always_inline)) { pairs[s] = V::pairs_from_i8(keys + s * sub_bytes); });
      repeat<kCount>([&](auto t) __attribute__((always_inline)) {
        repeat<kSubs>([&](auto s) __attribute__((always_inline)) { dots[s][t] = V::pair_dot(dots[s][t], pairs[s], query[t] + d + i); });
      });
    }
  }

  static float largest(const float* x) noexcept {
    F most = V::abs(V::loadu(x));
    for (std::size_t i = V::kN; i < kCacheBlockChannels; i += V::kN) most = V::max(V::abs(V::loadu(x + i)), most);
    alignas(64) float lanes[V::kN];
    V::store(lanes, most);
    for (std::size_t half = V::kN / 2; half >= 1; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
    }
    return lanes[0];
  }

  /// x / d to the nearest whole number within +-limit; d = 0 gives 0.
  [[gnu::always_inline]] static typename V::I quants_of(const float* x, F d, float limit) noexcept {
    const F ratio = V::select(V::eq(d, V::zero()), V::zero(), V::div(V::loadu(x), d));
    return V::round_to_int(V::max(V::min(ratio, V::set1(limit)), V::set1(-limit)));
  }

  /// 32 elements: the scale rounded to f16, then the quants that belong to it.
  static F16 quantize(const float* x, std::int8_t* quants) noexcept {
    F16 scale[V::kN];
    V::store_f16_saturate(scale, V::set1(largest(x) / 127.0f));
    const F d = V::load_f16(scale);
    for (std::size_t i = 0; i < kCacheBlockChannels; i += V::kN) V::store_i8(quants + i, quants_of(x + i, d, 127.0f));
    return scale[0];
  }
};

/// Q8Pages::WidePage.
template <class V>
struct WideQ8Pages : Q8Pages<V> {
  using F = typename V::F;
  static constexpr bool kWidens = false;

  template <std::size_t kQueries>
  struct Weights : Q8Pages<V>::template Weights<kQueries> {
    Weights(const AttendPage& page, const PageWeights<kQueries>& weights) noexcept
        : Q8Pages<V>::template Weights<kQueries>(page, weights, scales(page)) {}

   private:
    static const F16* scales(const AttendPage& page) noexcept {
      return reinterpret_cast<const F16*>(page.values + kPagePositions * page.head_dim * sizeof(float));
    }
  };

  [[gnu::always_inline]] static F load_value(const AttendPage& page, std::size_t p, std::size_t d, std::size_t) noexcept {
    return V::loadu(reinterpret_cast<const float*>(page.values) + p * page.head_dim + d);
  }
};

}  // namespace quench::generic
