#pragma once

// Included only by translation units that are compiled for AVX2, FMA and F16C. Everything here carries the namespace quench::avx2, so
// that no inline function compiled for AVX2 can stand in for one of the same name elsewhere (scripts/check_isa_symbols.py).

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "base/float16.h"

namespace quench::avx2 {

/// Eight f32 or int32 lanes. Every operation rounds as the numeric contract says: IEEE, to nearest even, no approximations. The same
/// names exist in avx512/lanes.h (16 lanes) and neon/lanes.h (4 lanes); kernels/generic/ is written against them.
struct Lanes {
  static constexpr std::size_t kN = 8;
  using F = __m256;
  using I = __m256i;
  using M = __m256;  ///< a lane mask: all bits of a lane set or clear

  static F load(const float* p) noexcept { return _mm256_load_ps(p); }
  static F loadu(const float* p) noexcept { return _mm256_loadu_ps(p); }
  static void store(float* p, F v) noexcept { _mm256_store_ps(p, v); }
  static void storeu(float* p, F v) noexcept { _mm256_storeu_ps(p, v); }
  /// The first `count` < kN lanes; the rest load as +0 and are not stored.
  static F load_partial(const float* p, std::size_t count) noexcept { return _mm256_maskload_ps(p, first_lanes(count)); }
  static void store_partial(float* p, F v, std::size_t count) noexcept { _mm256_maskstore_ps(p, first_lanes(count), v); }
  static I loadu_i(const std::int32_t* p) noexcept { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  /// kN bytes widened.
  static I load_u8(const std::byte* p) noexcept { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
  static I load_i8(const std::byte* p) noexcept { return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
  static void storeu_i(std::int32_t* p, I v) noexcept { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }

  static F zero() noexcept { return _mm256_setzero_ps(); }
  static F set1(float v) noexcept { return _mm256_set1_ps(v); }
  static I zero_i() noexcept { return _mm256_setzero_si256(); }
  static I set1_i(std::int32_t v) noexcept { return _mm256_set1_epi32(v); }

  static F add(F a, F b) noexcept { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) noexcept { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) noexcept { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) noexcept { return _mm256_div_ps(a, b); }
  static F sqrt(F a) noexcept { return _mm256_sqrt_ps(a); }
  /// a * b + c, rounded once.
  static F fma(F a, F b, F c) noexcept { return _mm256_fmadd_ps(a, b, c); }
  static F neg(F a) noexcept { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
  static F abs(F a) noexcept { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  /// a > b ? a : b, and a < b ? a : b: the second operand when they are equal.
  static F max(F a, F b) noexcept { return _mm256_max_ps(a, b); }
  static F min(F a, F b) noexcept { return _mm256_min_ps(a, b); }

  static M gt(F a, F b) noexcept { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
  static M lt(F a, F b) noexcept { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static M ge(F a, F b) noexcept { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
  static M eq(F a, F b) noexcept { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static M gt_i(I a, I b) noexcept { return _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)); }
  static F select(M mask, F if_set, F if_clear) noexcept { return _mm256_blendv_ps(if_clear, if_set, mask); }
  static I select_i(M mask, I if_set, I if_clear) noexcept { return _mm256_blendv_epi8(if_clear, if_set, _mm256_castps_si256(mask)); }

  /// Round to nearest, ties to even. The value fits int32.
  static I round_to_int(F a) noexcept { return _mm256_cvtps_epi32(a); }
  static F to_float(I a) noexcept { return _mm256_cvtepi32_ps(a); }
  static I bits(F a) noexcept { return _mm256_castps_si256(a); }
  static F from_bits(I a) noexcept { return _mm256_castsi256_ps(a); }
  static I add_i(I a, I b) noexcept { return _mm256_add_epi32(a, b); }
  static I sub_i(I a, I b) noexcept { return _mm256_sub_epi32(a, b); }
  static I mul_i(I a, I b) noexcept { return _mm256_mullo_epi32(a, b); }
  static I and_i(I a, I b) noexcept { return _mm256_and_si256(a, b); }
  static I or_i(I a, I b) noexcept { return _mm256_or_si256(a, b); }
  static I xor_i(I a, I b) noexcept { return _mm256_xor_si256(a, b); }
  template <int kBits>
  static I shift_left(I a) noexcept {
    return _mm256_slli_epi32(a, kBits);
  }
  template <int kBits>
  static I shift_right(I a) noexcept {  ///< logical
    return _mm256_srli_epi32(a, kBits);
  }

  /// f16 widened exactly.
  static F load_f16(const F16* p) noexcept { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  /// f16 rounded to nearest even; finite values beyond the range saturate at +-65504.
  static void store_f16_saturate(F16* p, F v) noexcept {
    const F limit = set1(65504.0f);
    const F clamped = max(neg(limit), min(limit, v));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(clamped, _MM_FROUND_TO_NEAREST_INT));
  }

  /// Lanes narrowed to int8 or uint16, which hold them.
  static void store_i8(std::int8_t* p, I v) noexcept {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }
  static void store_u16(std::uint16_t* p, I v) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
  }
  static std::int32_t sum_lanes(I v) noexcept {
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1)));
  }

 private:
  static __m256i first_lanes(std::size_t count) noexcept {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace quench::avx2
