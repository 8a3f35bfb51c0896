#pragma once

#include "kernels/generic/repeat.h"
#include "kernels/neon/lanes.h"

namespace quench::neon {

/// Integer dot products for 4 rows; names and meaning as in avx2/dot.h.
struct DotLanes : Lanes {
  using B = uint8x16_t;
  static constexpr std::size_t kBytes = 16;
  static constexpr int kByteBias = 0;

  /// 32 signed quants of one row; names and meaning as in generic/x86_rows.h.
  struct Row {
    int8x16_t first;
    int8x16_t second;
  };
  using RowSums = int32x4_t;
  static Row row_of(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) noexcept {
    return {vcombine_s8(vcreate_s8(a), vcreate_s8(b)), vcombine_s8(vcreate_s8(c), vcreate_s8(d))};
  }
  static Row row_of_words(const std::uint32_t (&w)[8]) noexcept { return load_row(w); }
  static Row masks_of_bits(std::uint32_t bits) noexcept { return {masks_of_16_bits(bits), masks_of_16_bits(bits >> 16)}; }
  static Row load_row(const void* p) noexcept {
    const auto* bytes = static_cast<const std::int8_t*>(p);
    return {vld1q_s8(bytes), vld1q_s8(bytes + 16)};
  }
  static void store_row(std::uint8_t* p, Row v) noexcept {
    vst1q_u8(p, vreinterpretq_u8_s8(v.first));
    vst1q_u8(p + 16, vreinterpretq_u8_s8(v.second));
  }
  static Row row_of_all(int value) noexcept {
    const int8x16_t all = vdupq_n_s8(static_cast<std::int8_t>(value));
    return {all, all};
  }
  static Row add_rows(Row a, Row b) noexcept { return {vaddq_s8(a.first, b.first), vaddq_s8(a.second, b.second)}; }
  static Row and_rows(Row a, Row b) noexcept { return {vandq_s8(a.first, b.first), vandq_s8(a.second, b.second)}; }
  static Row negate_where(Row v, Row mask) noexcept {
    return {vsubq_s8(veorq_s8(v.first, mask.first), mask.first), vsubq_s8(veorq_s8(v.second, mask.second), mask.second)};
  }
  static Row first_trits(Row v) noexcept { return {first_trits(v.first), first_trits(v.second)}; }
  static RowSums no_sums() noexcept { return vdupq_n_s32(0); }
  struct RowScales {
    int first;
    int second;
  };
  template <bool /*kEqual*/>
  static RowScales row_scales(int first, int second) noexcept {
    return {first, second};
  }
  static RowSums add_row_dot(RowSums sums, Row quants, Row x, RowScales scales) noexcept {
    sums = vmlaq_n_s32(sums, vdotq_s32(vdupq_n_s32(0), quants.first, x.first), scales.first);
    return vmlaq_n_s32(sums, vdotq_s32(vdupq_n_s32(0), quants.second, x.second), scales.second);
  }
  static RowSums add_magnitude_dot(RowSums sums, Row quants, Row x, RowScales scales) noexcept {
    return add_row_dot(sums, quants, x, scales);
  }
  static std::int32_t sum_of(RowSums sums) noexcept { return vaddvq_s32(sums); }

  // 4 tokens x 8 rows: 8 dots, 8 accumulators, weights, scales and a broadcast: 22 of 32 registers.
  static constexpr int kTokens = 4;
  static constexpr int kFloatTokens = 4;
  static constexpr int sub_tiles(int tokens) noexcept { return tokens == 1 ? 4 : 2; }
  static constexpr int slab_sub_tiles(int /*bits*/) noexcept { return 2; }

  static B load_bytes(const std::byte* p) noexcept { return vld1q_u8(reinterpret_cast<const std::uint8_t*>(p)); }
  static B low_nibbles(B v) noexcept { return vandq_u8(v, vdupq_n_u8(15)); }
  static B high_nibbles(B v) noexcept { return vshrq_n_u8(v, 4); }
  template <int kLeft, int kMask>
  static B shift_and_mask(B v) noexcept {
    if constexpr (kLeft > 0) v = vshlq_n_u8(v, kLeft);
    if constexpr (kLeft < 0) v = vshrq_n_u8(v, -kLeft);
    return vandq_u8(v, vdupq_n_u8(kMask));
  }
  static B or_bytes(B a, B b) noexcept { return vorrq_u8(a, b); }

  static B load_table(const std::uint8_t* p) noexcept { return vld1q_u8(p); }
  static B look_up(B table, B indices) noexcept { return vqtbl1q_u8(table, indices); }

  static I pairs_from_u8(const std::byte* p) noexcept {
    return vreinterpretq_s32_u16(vmovl_u8(vld1_u8(reinterpret_cast<const std::uint8_t*>(p))));
  }
  static I pairs_from_i8(const std::byte* p) noexcept {
    return vreinterpretq_s32_s16(vmovl_s8(vld1_s8(reinterpret_cast<const std::int8_t*>(p))));
  }
  static I pairs_from_i16(const std::byte* p) noexcept {
    return vreinterpretq_s32_s16(vld1q_s16(reinterpret_cast<const std::int16_t*>(p)));
  }
  static I pair_dot(I acc, I pairs, const std::int16_t* x) noexcept {
    const int16x8_t p = vreinterpretq_s16_s32(pairs);
    const int16x8_t x_pair = vreinterpretq_s16_s32(broadcast4(x));
    return vaddq_s32(acc, vpaddq_s32(vmull_s16(vget_low_s16(p), vget_low_s16(x_pair)), vmull_high_s16(p, x_pair)));
  }
  static void add_pairs(const std::int16_t* in, std::int16_t* out) noexcept {
    vst1q_s16(out, vpaddq_s16(vld1q_s16(in), vld1q_s16(in + 8)));
  }

  using Scale = int32x4_t;
  static Scale even_scale(I pairs) noexcept { return vshrq_n_s32(vshlq_n_s32(pairs, 16), 16); }
  static Scale odd_scale(I pairs) noexcept { return vshrq_n_s32(pairs, 16); }

  /// What a product takes: the bytes as they are.
  template <int kBits>
  static constexpr std::size_t kOperandBytes = kBytes;
  template <int kBits>
  static B load_operand(const std::byte* p) noexcept {
    return load_bytes(p);
  }
  template <int kBits>
  static void store_operand(std::byte* p, B chunk) noexcept {
    vst1q_u8(reinterpret_cast<std::uint8_t*>(p), chunk);
  }

  template <int kBits, int kChunks, int kSubs, int kTokenCount, class Chunk>
  [[gnu::always_inline]] static void dot(const Chunk& chunk, const std::int8_t* const (&x)[kTokenCount], I (&acc)[kSubs][kTokenCount]) {
    generic::repeat<kChunks>([&](auto c) __attribute__((always_inline)) {
      int8x16_t weights[kSubs];
      for (int s = 0; s < kSubs; ++s) {
        B bytes = chunk.template get<c>(s);
        if constexpr (kBits == 8) bytes = veorq_u8(bytes, vdupq_n_u8(0x80));
        weights[s] = vreinterpretq_s8_u8(bytes);
      }
      for (int t = 0; t < kTokenCount; ++t) {
        const int8x16_t x4 = vreinterpretq_s8_s32(broadcast4(x[t] + 4 * c));
        for (int s = 0; s < kSubs; ++s) acc[s][t] = vdotq_s32(acc[s][t], weights[s], x4);
      }
    });
  }

  template <int kBits, int kChunks, int kSubs, int kTokenCount, class Chunk>
  [[gnu::always_inline]] static void scaled_dot(const Chunk& chunk, const std::int8_t* const (&x)[kTokenCount], const Scale (&scale)[kSubs],
                                                I (&acc)[kSubs][kTokenCount]) {
    I dots[kSubs][kTokenCount];
    for (int s = 0; s < kSubs; ++s) {
      for (int t = 0; t < kTokenCount; ++t) dots[s][t] = vdupq_n_s32(0);
    }
    dot<kBits, kChunks>(chunk, x, dots);
    for (int s = 0; s < kSubs; ++s) {
      for (int t = 0; t < kTokenCount; ++t) acc[s][t] = vmlaq_s32(acc[s][t], dots[s][t], scale[s]);
    }
  }

 private:
  static int8x16_t masks_of_16_bits(std::uint32_t bits) noexcept {
    const uint8x16_t spread = vcombine_u8(vdup_n_u8(static_cast<std::uint8_t>(bits)), vdup_n_u8(static_cast<std::uint8_t>(bits >> 8)));
    return vreinterpretq_s8_u8(vtstq_u8(spread, vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201))));
  }
  static int8x16_t first_trits(int8x16_t v) noexcept {
    const uint8x16_t bytes = vreinterpretq_u8_s8(v);
    const uint8x16_t minus = vaddq_u8(vcgeq_u8(bytes, vdupq_n_u8(86)), vcgeq_u8(bytes, vdupq_n_u8(171)));
    return vreinterpretq_s8_u8(vsubq_u8(vdupq_n_u8(255), minus));
  }
  static int32x4_t broadcast4(const void* p) noexcept { return vld1q_dup_s32(static_cast<const std::int32_t*>(p)); }
};

}  // namespace quench::neon
