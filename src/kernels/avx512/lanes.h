#pragma once

// Included only by translation units that are compiled for AVX-512 F, BW, DQ, VL and VNNI, or, for a test on machines without them,
// for AVX2 with QUENCH_EMULATE_AVX512: then SIMDe computes the same intrinsics. Everything here carries the namespace quench::avx512
// (scripts/check_isa_symbols.py).

#ifdef QUENCH_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#pragma GCC diagnostic pop
// Emulated vectors are passed in memory; nothing outside this unit sees them.
#pragma GCC diagnostic ignored "-Wpsabi"
#else
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

#include "base/float16.h"

namespace quench::avx512 {

/// Sixteen f32 or int32 lanes; names and meaning as in avx2/lanes.h.
struct Lanes {
  static constexpr std::size_t kN = 16;
  using F = __m512;
  using I = __m512i;
  using M = __mmask16;

  static F load(const float* p) noexcept { return _mm512_load_ps(p); }
  static F loadu(const float* p) noexcept { return _mm512_loadu_ps(p); }
  static void store(float* p, F v) noexcept { _mm512_store_ps(p, v); }
  static void storeu(float* p, F v) noexcept { _mm512_storeu_ps(p, v); }
  static I loadu_i(const std::int32_t* p) noexcept { return _mm512_loadu_si512(p); }
  static void storeu_i(std::int32_t* p, I v) noexcept { _mm512_storeu_si512(p, v); }

  static F zero() noexcept { return _mm512_setzero_ps(); }
  static F set1(float v) noexcept { return _mm512_set1_ps(v); }
  static I zero_i() noexcept { return _mm512_setzero_si512(); }
  static I set1_i(std::int32_t v) noexcept { return _mm512_set1_epi32(v); }

  static F add(F a, F b) noexcept { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) noexcept { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) noexcept { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) noexcept { return _mm512_div_ps(a, b); }
  static F sqrt(F a) noexcept { return _mm512_sqrt_ps(a); }
  static F fma(F a, F b, F c) noexcept { return _mm512_fmadd_ps(a, b, c); }
  static F neg(F a) noexcept { return from_bits(_mm512_xor_si512(bits(a), _mm512_set1_epi32(INT32_MIN))); }
  static F abs(F a) noexcept { return from_bits(_mm512_and_si512(bits(a), _mm512_set1_epi32(INT32_MAX))); }
  static F max(F a, F b) noexcept { return _mm512_max_ps(a, b); }
  static F min(F a, F b) noexcept { return _mm512_min_ps(a, b); }

  static M gt(F a, F b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static M lt(F a, F b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static M ge(F a, F b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
  static M eq(F a, F b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static M gt_i(I a, I b) noexcept { return _mm512_cmpgt_epi32_mask(a, b); }
  static F select(M mask, F if_set, F if_clear) noexcept { return _mm512_mask_blend_ps(mask, if_clear, if_set); }
  static I select_i(M mask, I if_set, I if_clear) noexcept { return _mm512_mask_blend_epi32(mask, if_clear, if_set); }

  static I bits(F a) noexcept { return _mm512_castps_si512(a); }
  static F from_bits(I a) noexcept { return _mm512_castsi512_ps(a); }
  static I add_i(I a, I b) noexcept { return _mm512_add_epi32(a, b); }
  static I sub_i(I a, I b) noexcept { return _mm512_sub_epi32(a, b); }
  static I mul_i(I a, I b) noexcept { return _mm512_mullo_epi32(a, b); }
  static I and_i(I a, I b) noexcept { return _mm512_and_si512(a, b); }
  static I or_i(I a, I b) noexcept { return _mm512_or_si512(a, b); }
  static I xor_i(I a, I b) noexcept { return _mm512_xor_si512(a, b); }
  template <int kBits>
  static I shift_left(I a) noexcept {
    return _mm512_slli_epi32(a, kBits);
  }
  template <int kBits>
  static I shift_right(I a) noexcept {
    return _mm512_srli_epi32(a, kBits);
  }

  static void store_f16_saturate(F16* p, F v) noexcept {
    const F limit = set1(65504.0f);
    store_f16(p, max(neg(limit), min(limit, v)));
  }

#ifndef QUENCH_EMULATE_AVX512
  static F load_partial(const float* p, std::size_t count) noexcept { return _mm512_maskz_loadu_ps(first_lanes(count), p); }
  static void store_partial(float* p, F v, std::size_t count) noexcept { _mm512_mask_storeu_ps(p, first_lanes(count), v); }
  static I round_to_int(F a) noexcept { return _mm512_cvtps_epi32(a); }
  static F to_float(I a) noexcept { return _mm512_cvtepi32_ps(a); }
  static F load_f16(const F16* p) noexcept { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static I load_u8(const std::byte* p) noexcept { return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static I load_i8(const std::byte* p) noexcept { return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static void store_i8(std::int8_t* p, I v) noexcept { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v)); }
  static void store_u16(std::uint16_t* p, I v) noexcept { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(v)); }
  static std::int32_t sum_lanes(I v) noexcept { return _mm512_reduce_add_epi32(v); }
  /// combine(p[i], p[i + half]) for half = 8, 4, 2, 1.
  static float fold_sum(F p) noexcept {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(p), _mm512_extractf32x8_ps(p, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float fold_max(F p) noexcept {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(p), _mm512_extractf32x8_ps(p, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

 private:
  static M first_lanes(std::size_t count) noexcept { return static_cast<M>((1u << count) - 1u); }
  static void store_f16(F16* p, F v) noexcept {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
#else
  // SIMDe 0.7.4 lacks these: two AVX2 halves through memory.
  static F load_partial(const float* p, std::size_t count) noexcept {
    alignas(64) float lanes[kN] = {};
    for (std::size_t i = 0; i < count; ++i) lanes[i] = p[i];
    return load(lanes);
  }
  static void store_partial(float* p, F v, std::size_t count) noexcept {
    alignas(64) float lanes[kN];
    store(lanes, v);
    for (std::size_t i = 0; i < count; ++i) p[i] = lanes[i];
  }
  static I round_to_int(F a) noexcept {
    alignas(64) float lanes[kN];
    alignas(64) std::int32_t out[kN];
    store(lanes, a);
    for (std::size_t i = 0; i < kN; i += 8) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + i), _mm256_cvtps_epi32(_mm256_load_ps(lanes + i)));
    }
    return loadu_i(out);
  }
  static F to_float(I a) noexcept {
    alignas(64) std::int32_t lanes[kN];
    alignas(64) float out[kN];
    storeu_i(lanes, a);
    for (std::size_t i = 0; i < kN; ++i) out[i] = static_cast<float>(lanes[i]);
    return load(out);
  }
  static F load_f16(const F16* p) noexcept {
    alignas(64) float out[kN];
    for (std::size_t i = 0; i < kN; i += 8) {
      _mm256_store_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i))));
    }
    return load(out);
  }
  static I load_u8(const std::byte* p) noexcept {
    alignas(64) std::int32_t lanes[kN];
    for (std::size_t i = 0; i < kN; ++i) lanes[i] = static_cast<std::uint8_t>(p[i]);
    return loadu_i(lanes);
  }
  static I load_i8(const std::byte* p) noexcept {
    alignas(64) std::int32_t lanes[kN];
    for (std::size_t i = 0; i < kN; ++i) lanes[i] = static_cast<std::int8_t>(p[i]);
    return loadu_i(lanes);
  }
  static void store_i8(std::int8_t* p, I v) noexcept {
    alignas(64) std::int32_t lanes[kN];
    storeu_i(lanes, v);
    for (std::size_t i = 0; i < kN; ++i) p[i] = static_cast<std::int8_t>(lanes[i]);
  }
  static void store_u16(std::uint16_t* p, I v) noexcept {
    alignas(64) std::int32_t lanes[kN];
    storeu_i(lanes, v);
    for (std::size_t i = 0; i < kN; ++i) p[i] = static_cast<std::uint16_t>(lanes[i]);
  }
  static std::int32_t sum_lanes(I v) noexcept {
    alignas(64) std::int32_t lanes[kN];
    storeu_i(lanes, v);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < kN; ++i) sum += lanes[i];
    return sum;
  }

 private:
  static void store_f16(F16* p, F v) noexcept {
    alignas(64) float lanes[kN];
    store(lanes, v);
    for (std::size_t i = 0; i < kN; i += 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p + i), _mm256_cvtps_ph(_mm256_load_ps(lanes + i), _MM_FROUND_TO_NEAREST_INT));
    }
  }
#endif
};

}  // namespace quench::avx512
