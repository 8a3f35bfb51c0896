#pragma once

#include <cstring>

#include "kernels/avx512/lanes.h"
#include "kernels/generic/repeat.h"
#include "kernels/generic/x86_rows.h"

namespace quench::avx512 {

/// Integer dot products for 16 rows; names and meaning as in avx2/dot.h.
struct DotLanes : Lanes, generic::X86Rows<Lanes> {
  using B = __m512i;
  static constexpr std::size_t kBytes = 64;
  /// VNNI multiplies unsigned weights as they are stored: q + 128.
  static constexpr int kByteBias = 128;

  // 8 dots, 8 accumulators, weights and scales: 18 of 32 registers; 8 independent chains of dot instructions hide their latency of 5.
  static constexpr int kTokens = 8;
  static constexpr int kFloatTokens = 8;
  static constexpr int sub_tiles(int) noexcept { return 1; }
  static constexpr int slab_sub_tiles(int /*bits*/) noexcept { return 1; }

  static B load_bytes(const std::byte* p) noexcept { return _mm512_load_si512(p); }
  static B low_nibbles(B v) noexcept { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
  static B high_nibbles(B v) noexcept { return _mm512_and_si512(_mm512_srli_epi32(v, 4), _mm512_set1_epi8(15)); }
  template <int kLeft, int kMask>
  static B shift_and_mask(B v) noexcept {
    if constexpr (kLeft > 0) v = _mm512_slli_epi32(v, kLeft);
    if constexpr (kLeft < 0) v = _mm512_srli_epi32(v, -kLeft);
    return _mm512_and_si512(v, _mm512_set1_epi8(kMask));
  }
  /// Zero for the bf16 whose magnitude is below 2^-56.
  static B flush_bf16(B weights) noexcept {
    constexpr int kSmallest = 0x2380;  // 2^-56
#ifndef QUENCH_EMULATE_AVX512
    const __mmask32 kept = _mm512_cmpge_epu16_mask(_mm512_and_si512(weights, _mm512_set1_epi16(0x7FFF)), _mm512_set1_epi16(kSmallest));
    return _mm512_maskz_mov_epi16(kept, weights);
#else
    alignas(64) std::uint16_t words[32];
    _mm512_store_si512(words, weights);
    for (std::uint16_t& word : words) word = (word & 0x7FFF) < kSmallest ? std::uint16_t{0} : word;
    return _mm512_load_si512(words);
#endif
  }
  static B or_bytes(B a, B b) noexcept { return _mm512_or_si512(a, b); }
  static I pair_dot(I acc, I pairs, const std::int16_t* x) noexcept { return _mm512_dpwssd_epi32(acc, pairs, broadcast4(x)); }

#ifndef QUENCH_EMULATE_AVX512
  static B load_table(const std::uint8_t* p) noexcept {
    return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static B look_up(B table, B indices) noexcept { return _mm512_shuffle_epi8(table, indices); }
  static I pairs_from_u8(const std::byte* p) noexcept {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static I pairs_from_i8(const std::byte* p) noexcept {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static I even_scale(I pairs) noexcept { return odd_scale(_mm512_slli_epi32(pairs, 16)); }
  static I odd_scale(I pairs) noexcept { return _mm512_srai_epi32(pairs, 16); }
#else
  // SIMDe 0.7.4 lacks these, or their plain names.
  static B load_table(const std::uint8_t* p) noexcept {
    alignas(64) std::uint8_t bytes[kBytes];
    for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = p[i % 16];
    return _mm512_load_si512(bytes);
  }
  static B look_up(B table, B indices) noexcept {
    alignas(64) std::uint8_t bytes[kBytes];
    alignas(64) std::uint8_t at[kBytes];
    _mm512_store_si512(bytes, table);
    _mm512_store_si512(at, indices);
    for (std::size_t i = 0; i < kBytes; ++i) at[i] = bytes[at[i]];
    return _mm512_load_si512(at);
  }
  static I even_scale(I pairs) noexcept { return odd_scale(_mm512_slli_epi32(pairs, 16)); }
  static I odd_scale(I pairs) noexcept {
    alignas(64) std::int32_t lanes[kN];
    storeu_i(lanes, pairs);
    for (std::int32_t& lane : lanes) lane >>= 16;
    return loadu_i(lanes);
  }
  static I pairs_from_u8(const std::byte* p) noexcept {
    alignas(64) std::int16_t words[32];
    for (std::size_t i = 0; i < 32; ++i) words[i] = static_cast<std::uint8_t>(p[i]);
    return _mm512_load_si512(words);
  }
  static I pairs_from_i8(const std::byte* p) noexcept {
    alignas(64) std::int16_t words[32];
    for (std::size_t i = 0; i < 32; ++i) words[i] = static_cast<std::int8_t>(p[i]);
    return _mm512_load_si512(words);
  }
#endif
  static I pairs_from_i16(const std::byte* p) noexcept { return _mm512_loadu_si512(p); }
  static void add_pairs(const std::int16_t* in, std::int16_t* out) noexcept {
    const auto* p = reinterpret_cast<const __m128i*>(in);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_hadd_epi16(_mm_loadu_si128(p), _mm_loadu_si128(p + 1)));
  }

  using Scale = __m512i;  ///< int32 per row

  /// What a product takes: the bytes as they are.
  template <int kBits>
  static constexpr std::size_t kOperandBytes = kBytes;
  template <int kBits>
  static B load_operand(const std::byte* p) noexcept {
    return load_bytes(p);
  }
  template <int kBits>
  static void store_operand(std::byte* p, B chunk) noexcept {
    _mm512_store_si512(p, chunk);
  }

  template <int kBits, int kChunks, int kSubs, int kTokenCount, class Chunk>
  [[gnu::always_inline]] static void dot(const Chunk& chunk, const std::int8_t* const (&x)[kTokenCount], I (&acc)[kSubs][kTokenCount]) {
    generic::repeat<kChunks>([&](auto c) __attribute__((always_inline)) {
      for (int s = 0; s < kSubs; ++s) {
        const B weights = chunk.template get<c>(s);
        for (int t = 0; t < kTokenCount; ++t) acc[s][t] = _mm512_dpbusd_epi32(acc[s][t], weights, broadcast4(x[t] + 4 * c));
      }
    });
  }

  template <int kBits, int kChunks, int kSubs, int kTokenCount, class Chunk>
  [[gnu::always_inline]] static void scaled_dot(const Chunk& chunk, const std::int8_t* const (&x)[kTokenCount], const Scale (&scale)[kSubs],
                                                I (&acc)[kSubs][kTokenCount]) {
    I dots[kSubs][kTokenCount];
    for (int s = 0; s < kSubs; ++s) {
      for (int t = 0; t < kTokenCount; ++t) dots[s][t] = _mm512_setzero_si512();
    }
    dot<kBits, kChunks>(chunk, x, dots);
    for (int s = 0; s < kSubs; ++s) {
      for (int t = 0; t < kTokenCount; ++t) acc[s][t] = _mm512_add_epi32(acc[s][t], _mm512_mullo_epi32(dots[s][t], scale[s]));
    }
  }

 private:
  static __m512i broadcast4(const void* p) noexcept {
    std::int32_t word;
    std::memcpy(&word, p, sizeof(word));
    return _mm512_set1_epi32(word);
  }
};

}  // namespace quench::avx512
