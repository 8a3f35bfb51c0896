#pragma once

#include <cstddef>
#include <cstdint>

/// Included by avx2/dot.h and avx512/dot.h after their intrinsics.
namespace quench::generic {

/// 32 signed quants of one row, in k order: AVX2 code for both x86 instruction sets. `Lanes` only tells their symbols apart.
template <class Lanes>
struct X86Rows {
  using Row = __m256i;
  using RowSums = __m256i;  ///< partial sums in int32

  static Row row_of(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) noexcept {
    return _mm256_set_epi64x(static_cast<long long>(d), static_cast<long long>(c), static_cast<long long>(b), static_cast<long long>(a));
  }
  static Row load_row(const std::int8_t* p) noexcept { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store_row(std::uint8_t* p, Row v) noexcept { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  static Row row_of_all(int value) noexcept { return _mm256_set1_epi8(static_cast<char>(value)); }
  static Row add_rows(Row a, Row b) noexcept { return _mm256_add_epi8(a, b); }
  /// Negated where `mask` has all bits of a byte set.
  static Row negate_where(Row v, Row mask) noexcept { return _mm256_sub_epi8(_mm256_xor_si256(v, mask), mask); }

  static RowSums no_sums() noexcept { return _mm256_setzero_si256(); }
  /// sums + first x (dot of the first 16) + second x (dot of the last 16). Quants within +-127.
  static RowSums add_row_dot(RowSums sums, Row quants, const std::int8_t* x, int first, int second) noexcept {
    const __m256i signed_x = _mm256_sign_epi8(load_row(x), quants);
    const __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(quants), signed_x);
    const __m128i first_scale = _mm_set1_epi16(static_cast<short>(first));
    const __m128i second_scale = _mm_set1_epi16(static_cast<short>(second));
    const __m256i scale = _mm256_inserti128_si256(_mm256_castsi128_si256(first_scale), second_scale, 1);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(products, scale));
  }
  static std::int32_t sum_of(RowSums sums) noexcept {
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1)));
  }
};

}  // namespace quench::generic
