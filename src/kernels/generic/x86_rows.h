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
  static Row row_of_words(const std::uint32_t (&w)[8]) noexcept {
    const auto word = [&w](int i) { return static_cast<int>(w[i]); };
    return _mm256_set_epi32(word(7), word(6), word(5), word(4), word(3), word(2), word(1), word(0));
  }
  /// All bits of byte i where bit i is set.
  static Row masks_of_bits(std::uint32_t bits) noexcept {
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)),
                                               _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0));
    const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
    return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
  }
  static Row load_row(const void* p) noexcept { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static void store_row(std::uint8_t* p, Row v) noexcept { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  static Row row_of_all(int value) noexcept { return _mm256_set1_epi8(static_cast<char>(value)); }
  static Row add_rows(Row a, Row b) noexcept { return _mm256_add_epi8(a, b); }
  static Row and_rows(Row a, Row b) noexcept { return _mm256_and_si256(a, b); }
  /// Negated where `mask` has all bits of a byte set.
  static Row negate_where(Row v, Row mask) noexcept { return _mm256_sub_epi8(_mm256_xor_si256(v, mask), mask); }

  /// The ternary digit that a byte starts with as a fraction of 256, less one: 3 v / 256 - 1.
  static Row first_trits(Row v) noexcept {
    const __m256i biased = _mm256_xor_si256(v, _mm256_set1_epi8(static_cast<char>(0x80)));  // comparisons are signed
    const __m256i from_1 = _mm256_cmpgt_epi8(biased, _mm256_set1_epi8(85 - 128));
    const __m256i from_2 = _mm256_cmpgt_epi8(biased, _mm256_set1_epi8(170 - 128));
    return _mm256_sub_epi8(_mm256_set1_epi8(-1), _mm256_add_epi8(from_1, from_2));
  }

  static RowSums no_sums() noexcept { return _mm256_setzero_si256(); }
  /// Multipliers of the two halves of a row.
  template <bool kEqual>
  static Row row_scales(int first, int second) noexcept {
    if constexpr (kEqual) {
      return _mm256_set1_epi16(static_cast<short>(first));
    } else {
      const __m128i words_0 = _mm_set1_epi16(0x0100);
      const __m128i words_1 = _mm_set1_epi16(0x0302);
      return _mm256_shuffle_epi8(_mm256_set1_epi32(first | second << 16), _mm256_set_m128i(words_1, words_0));
    }
  }
  /// sums + dot of each half times its scale. Quants within +-127.
  static RowSums add_row_dot(RowSums sums, Row quants, Row x, Row scales) noexcept {
    return add_magnitude_dot(sums, _mm256_abs_epi8(quants), _mm256_sign_epi8(x, quants), scales);
  }
  /// The same for quants of 0 to 127.
  static RowSums add_magnitude_dot(RowSums sums, Row quants, Row x, Row scales) noexcept {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(quants, x), scales));
  }
  static std::int32_t sum_of(RowSums sums) noexcept {
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1)));
  }
};

}  // namespace quench::generic
