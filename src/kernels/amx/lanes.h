#pragma once

#include <cstddef>

#include "kernels/avx512/dot.h"

// Included only by units that are compiled for the instruction sets of avx512: tiles are inline assembly and need no flags.
namespace quench::amx {

/// The lanes of AVX-512, and what folding scales into bytes needs besides: 32 words.
struct WordLanes : avx512::DotLanes {
  static B set1_words(int v) noexcept { return _mm512_set1_epi16(static_cast<short>(v)); }
  static B multiply_words(B a, B b) noexcept { return _mm512_mullo_epi16(a, b); }
  static B add_words(B a, B b) noexcept { return _mm512_add_epi16(a, b); }
  static B subtract_words(B a, B b) noexcept { return _mm512_sub_epi16(a, b); }
  static B subtract_bytes(B a, B b) noexcept { return _mm512_sub_epi8(a, b); }
  static B xor_bytes(B a, B b) noexcept { return _mm512_xor_si512(a, b); }
  static B set1_bytes(int v) noexcept { return _mm512_set1_epi8(static_cast<char>(v)); }
  static B low_bytes(B words) noexcept { return _mm512_and_si512(words, set1_words(0x00FF)); }
  static B words_right_8(B a) noexcept { return _mm512_srli_epi16(a, 8); }
  static B words_left_8(B a) noexcept { return _mm512_slli_epi16(a, 8); }
  template <int kBits>
  static B words_right(B a) noexcept {
    return _mm512_srli_epi16(a, kBits);
  }
  static B and_words(B a, int mask) noexcept { return _mm512_and_si512(a, set1_words(mask)); }
  /// The even bytes of a and the odd bytes of b.
  static B join_bytes(B even_from, B odd_from) noexcept {
    constexpr int kSelect = 0xCA;  // first ? second : third, bit by bit
    return _mm512_ternarylogic_epi32(set1_words(0x00FF), even_from, odd_from, kSelect);
  }
  /// float(v) for |v| < 2^22, by additions: beside tiles, only one of the two ports multiplies and converts, but both add.
  static F small_to_float(I v) noexcept {
    constexpr std::int32_t kBits = 0x4B400000;  // 1.5 x 2^23: the last bit of its mantissa counts ones
    return sub(from_bits(add_i(v, set1_i(kBits))), from_bits(set1_i(kBits)));
  }
  static void store_bytes(std::byte* p, B v) noexcept { _mm512_store_si512(p, v); }

  /// The lower (upper) word of every pair, twice.
  static B lower_words(I pairs) noexcept { return or_i(and_i(pairs, set1_i(0xFFFF)), shift_left<16>(pairs)); }
  static B upper_words(I pairs) noexcept { return or_i(shift_right<16>(pairs), and_i(pairs, set1_i(static_cast<int>(0xFFFF0000u)))); }
};

}  // namespace quench::amx
