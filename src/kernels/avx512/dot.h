#pragma once

#include <array>
#include <cstdint>
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
  // 6 tokens x 2 tiles: 12 chains, 29 of 32 registers, and 8 loads for 12 products.
  static constexpr int kPairTokens = 6;
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
  static I words_to_int(const std::int16_t* p) noexcept {
    return _mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static I pairs_from_i8(const std::byte* p) noexcept {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
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
  static I pairs_from_u8(const std::byte* p) noexcept {
    alignas(64) std::int16_t words[32];
    for (std::size_t i = 0; i < 32; ++i) words[i] = static_cast<std::uint8_t>(p[i]);
    return _mm512_load_si512(words);
  }
  static I words_to_int(const std::int16_t* p) noexcept {
    alignas(64) std::int32_t lanes[kN];
    for (std::size_t i = 0; i < kN; ++i) lanes[i] = p[i];
    return loadu_i(lanes);
  }
  static I pairs_from_i8(const std::byte* p) noexcept {
    alignas(64) std::int16_t words[32];
    for (std::size_t i = 0; i < 32; ++i) words[i] = static_cast<std::int8_t>(p[i]);
    return _mm512_load_si512(words);
  }
#endif
  static constexpr bool kStartsDots = true;
  /// -kBias x the sums of sub-blocks of kElements (16 or 32), from the sums of 16 quants: 16 numbers, or 8.
  template <int kElements, int kBias>
  static void store_starts(const std::int16_t* sums, std::int32_t* starts) noexcept {
    if constexpr (kElements == 32) {
      const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
      _mm256_store_si256(reinterpret_cast<__m256i*>(starts), _mm256_madd_epi16(pairs, _mm256_set1_epi16(-kBias)));
    } else {
      storeu_i(starts, mul_i(words_to_int(sums), set1_i(-kBias)));
    }
  }

  static I pairs_from_i16(const std::byte* p) noexcept { return _mm512_loadu_si512(p); }
  static void add_pairs(const std::int16_t* in, std::int16_t* out) noexcept {
    const auto* p = reinterpret_cast<const __m128i*>(in);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_hadd_epi16(_mm_loadu_si128(p), _mm_loadu_si128(p + 1)));
  }

  /// Words (s, 256 s) for each row, s in [-128, 127]: a dot d below 2^23, as the words (d mod 256, d / 256), takes one multiplication of
  /// pairs. VPMULLD is two instructions, and on one port alone.
  using Scale = __m512i;
  static Scale even_scale(I pairs) noexcept { return pick_bytes<0, 1, kZeroByte, 0>(pairs); }
  static Scale odd_scale(I pairs) noexcept { return pick_bytes<2, 3, kZeroByte, 2>(pairs); }

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
      B weights[kSubs];
      generic::repeat<kSubs>([&](auto s) __attribute__((always_inline)) { weights[s] = chunk.template get<c>(s); });
      generic::repeat<kTokenCount>([&](auto t) __attribute__((always_inline)) {
        const I activations = broadcast4(x[t] + 4 * c);
        generic::repeat<kSubs>([&](auto s)
                                   __attribute__((always_inline)) { acc[s][t] = _mm512_dpbusd_epi32(acc[s][t], weights[s], activations); });
      });
    });
  }

  template <int kBits, int kChunks, int kSubs, int kTokenCount, class Chunk>
  [[gnu::always_inline]] static void scaled_dot(const Chunk& chunk, const std::int8_t* const (&x)[kTokenCount], const Scale (&scale)[kSubs],
                                                I (&acc)[kSubs][kTokenCount], const I (&start)[kTokenCount]) {
    I dots[kSubs][kTokenCount];
    generic::for_registers<kSubs, kTokenCount>([&](auto s, auto t) __attribute__((always_inline)) { dots[s][t] = start[t]; });
    dot<kBits, kChunks>(chunk, x, dots);
    generic::for_registers<kSubs, kTokenCount>([&](auto s, auto t) __attribute__((always_inline)) {
      const I words = pick_bytes<0, kZeroByte, 1, 2>(dots[s][t]);
      acc[s][t] = _mm512_dpwssd_epi32(acc[s][t], words, scale[s]);
    });
  }

 private:
  static constexpr int kZeroByte = -128;

  /// In each lane, byte i becomes the lane's byte number k_i.
  template <int k0, int k1, int k2, int k3>
  static I pick_bytes(I v) noexcept {
    alignas(16) static constexpr auto kPicks = [] {
      constexpr int kOfLane[4] = {k0, k1, k2, k3};
      std::array<std::int8_t, 16> picks{};
      for (int i = 0; i < 16; ++i) {
        const int pick = kOfLane[i % 4];
        picks[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(pick < 0 ? pick : i / 4 * 4 + pick);
      }
      return picks;
    }();
#ifndef QUENCH_EMULATE_AVX512
    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kPicks.data()))));
#else
    alignas(64) std::uint8_t from[kBytes];
    alignas(64) std::uint8_t to[kBytes];
    _mm512_store_si512(from, v);
    for (std::size_t i = 0; i < kBytes; ++i) {
      const int pick = kPicks[i % 16];
      to[i] = pick < 0 ? std::uint8_t{0} : from[i / 16 * 16 + static_cast<std::size_t>(pick)];
    }
    return _mm512_load_si512(to);
#endif
  }

  static __m512i broadcast4(const void* p) noexcept {
    std::int32_t word;
    std::memcpy(&word, p, sizeof(word));
    return _mm512_set1_epi32(word);
  }
};

}  // namespace quench::avx512
