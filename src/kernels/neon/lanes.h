#pragma once

// Included only by translation units that are compiled for aarch64 with the dot product instructions. Everything here carries the
// namespace quench::neon (scripts/check_isa_symbols.py).

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/float16.h"

namespace quench::neon {

/// Four f32 or int32 lanes; names and meaning as in avx2/lanes.h.
struct Lanes {
  static constexpr std::size_t kN = 4;
  using F = float32x4_t;
  using I = int32x4_t;
  using M = uint32x4_t;

  static F load(const float* p) noexcept { return vld1q_f32(p); }
  static F loadu(const float* p) noexcept { return vld1q_f32(p); }
  static void store(float* p, F v) noexcept { vst1q_f32(p, v); }
  static void storeu(float* p, F v) noexcept { vst1q_f32(p, v); }
  static F load_partial(const float* p, std::size_t count) noexcept {
    float lanes[kN] = {};
    for (std::size_t i = 0; i < count; ++i) lanes[i] = p[i];
    return vld1q_f32(lanes);
  }
  static void store_partial(float* p, F v, std::size_t count) noexcept {
    float lanes[kN];
    vst1q_f32(lanes, v);
    for (std::size_t i = 0; i < count; ++i) p[i] = lanes[i];
  }
  static I loadu_i(const std::int32_t* p) noexcept { return vld1q_s32(p); }
  static I load_u8(const std::byte* p) noexcept {
    std::uint32_t bytes;
    std::memcpy(&bytes, p, sizeof(bytes));
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(bytes)))));
  }
  static I load_i8(const std::byte* p) noexcept {
    std::uint32_t bytes;
    std::memcpy(&bytes, p, sizeof(bytes));
    return vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(bytes))));
  }
  static void storeu_i(std::int32_t* p, I v) noexcept { vst1q_s32(p, v); }

  static F zero() noexcept { return vdupq_n_f32(0.0f); }
  static F set1(float v) noexcept { return vdupq_n_f32(v); }
  static I zero_i() noexcept { return vdupq_n_s32(0); }
  static I set1_i(std::int32_t v) noexcept { return vdupq_n_s32(v); }

  static F add(F a, F b) noexcept { return vaddq_f32(a, b); }
  static F sub(F a, F b) noexcept { return vsubq_f32(a, b); }
  static F mul(F a, F b) noexcept { return vmulq_f32(a, b); }
  static F div(F a, F b) noexcept { return vdivq_f32(a, b); }
  static F sqrt(F a) noexcept { return vsqrtq_f32(a); }
  static F fma(F a, F b, F c) noexcept { return vfmaq_f32(c, a, b); }
  static F neg(F a) noexcept { return vnegq_f32(a); }
  static F abs(F a) noexcept { return vabsq_f32(a); }
  // Not vmaxq: it orders the two zeros.
  static F max(F a, F b) noexcept { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static F min(F a, F b) noexcept { return vbslq_f32(vcltq_f32(a, b), a, b); }

  static M gt(F a, F b) noexcept { return vcgtq_f32(a, b); }
  static M lt(F a, F b) noexcept { return vcltq_f32(a, b); }
  static M ge(F a, F b) noexcept { return vcgeq_f32(a, b); }
  static M eq(F a, F b) noexcept { return vceqq_f32(a, b); }
  static M gt_i(I a, I b) noexcept { return vcgtq_s32(a, b); }
  static F select(M mask, F if_set, F if_clear) noexcept { return vbslq_f32(mask, if_set, if_clear); }
  static I select_i(M mask, I if_set, I if_clear) noexcept { return vbslq_s32(mask, if_set, if_clear); }

  static I round_to_int(F a) noexcept { return vcvtnq_s32_f32(a); }
  static F to_float(I a) noexcept { return vcvtq_f32_s32(a); }
  static I bits(F a) noexcept { return vreinterpretq_s32_f32(a); }
  static F from_bits(I a) noexcept { return vreinterpretq_f32_s32(a); }
  static I add_i(I a, I b) noexcept { return vaddq_s32(a, b); }
  static I sub_i(I a, I b) noexcept { return vsubq_s32(a, b); }
  static I mul_i(I a, I b) noexcept { return vmulq_s32(a, b); }
  static I and_i(I a, I b) noexcept { return vandq_s32(a, b); }
  static I or_i(I a, I b) noexcept { return vorrq_s32(a, b); }
  static I xor_i(I a, I b) noexcept { return veorq_s32(a, b); }
  template <int kBits>
  static I shift_left(I a) noexcept {
    return vshlq_n_s32(a, kBits);
  }
  template <int kBits>
  static I shift_right(I a) noexcept {
    return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), kBits));
  }

  static F load_f16(const F16* p) noexcept {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(p))));
  }
  static void store_f16_saturate(F16* p, F v) noexcept {
    const F limit = set1(65504.0f);
    const F clamped = max(neg(limit), min(limit, v));
    vst1_u16(reinterpret_cast<std::uint16_t*>(p), vreinterpret_u16_f16(vcvt_f16_f32(clamped)));
  }
  static void store_i8(std::int8_t* p, I v) noexcept {
    const int16x4_t words = vmovn_s32(v);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    vst1_lane_s32(reinterpret_cast<std::int32_t*>(p), vreinterpret_s32_s8(bytes), 0);
  }
  static void store_u16(std::uint16_t* p, I v) noexcept { vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(v))); }
  static std::int32_t sum_lanes(I v) noexcept { return vaddvq_s32(v); }
};

}  // namespace quench::neon
