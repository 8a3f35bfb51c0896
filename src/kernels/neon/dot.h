#pragma once

#include "kernels/generic/repeat.h"
#include "kernels/neon/lanes.h"

namespace quench::neon {

/// Integer dot products for 4 rows; names and meaning as in avx2/dot.h.
struct DotLanes : Lanes {
  using B = uint8x16_t;
  static constexpr std::size_t kBytes = 16;
  static constexpr int kByteBias = 0;

  // 4 tokens x 8 rows: 8 dots, 8 accumulators, weights, scales and a broadcast: 22 of 32 registers.
  static constexpr int kTokens = 4;
  static constexpr int kFloatTokens = 4;
  static constexpr int sub_tiles(int tokens) noexcept { return tokens == 1 ? 4 : 2; }

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
  static int32x4_t broadcast4(const void* p) noexcept { return vld1q_dup_s32(static_cast<const std::int32_t*>(p)); }
};

}  // namespace quench::neon
