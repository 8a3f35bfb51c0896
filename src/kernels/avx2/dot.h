#pragma once

#include <cstring>

#include "kernels/avx2/lanes.h"
#include "kernels/generic/repeat.h"
#include "kernels/generic/x86_rows.h"

namespace quench::avx2 {

/// Integer dot products for 8 rows: what kernels/generic/linear.h needs beyond the lanes. The same names exist in avx512/dot.h and
/// neon/dot.h.
struct DotLanes : Lanes, generic::X86Rows<Lanes> {
  using B = __m256i;  ///< 4 bytes (4 consecutive k) for each of the 8 rows
  static constexpr std::size_t kBytes = 32;
  /// What the dot of 8-bit weights, stored with the sign bit flipped, comes out too high by, times the sum of x: nothing here.
  static constexpr int kByteBias = 0;

  // Token groups. 4 tokens x 16 rows: 8 int16 sums, 2 weights (2 magnitudes), a broadcast and a product fill the 16 registers while a
  // group is summed; the f32 accumulators wait on the stack, one load and store per 32 k. Sharing each broadcast between two
  // registers of rows matters more: the loop issues 5 of 6 possible instructions a cycle (q4_1: 184 GOP/s, 156 with 8 rows).
  static constexpr int kTokens = 4;
  // Float kernels: 4 tokens x 16 rows are 8 independent chains, what latency 4 at 2 a cycle asks for.
  static constexpr int kFloatTokens = 4;
  /// Registers of 8 rows that a group of `tokens` works on at once.
  static constexpr int sub_tiles(int /*tokens*/) noexcept { return 2; }
  /// Of unpacked weights: wide quants run so few chunks before they are scaled that their sums go through the stack with 16 rows.
  static constexpr int slab_sub_tiles(int bits) noexcept { return bits >= 6 ? 1 : 2; }

  static B load_bytes(const std::byte* p) noexcept { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
  static B low_nibbles(B v) noexcept { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
  static B high_nibbles(B v) noexcept { return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15)); }
  /// (v << kLeft) & mask per byte; kLeft < 0 shifts right.
  template <int kLeft, int kMask>
  static B shift_and_mask(B v) noexcept {
    if constexpr (kLeft > 0) v = _mm256_slli_epi16(v, kLeft);
    if constexpr (kLeft < 0) v = _mm256_srli_epi16(v, -kLeft);
    return _mm256_and_si256(v, _mm256_set1_epi8(kMask));
  }
  static B or_bytes(B a, B b) noexcept { return _mm256_or_si256(a, b); }

  /// A table of 16 bytes, and what it has at 4-bit indices.
  static B load_table(const std::uint8_t* p) noexcept {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static B look_up(B table, B indices) noexcept { return _mm256_shuffle_epi8(table, indices); }

  /// Pairs of int16 for each row from pairs of bytes.
  static I pairs_from_u8(const std::byte* p) noexcept { return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static I pairs_from_i8(const std::byte* p) noexcept { return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static I pairs_from_i16(const std::byte* p) noexcept { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  /// acc + pair . (x[0], x[1]) for each row.
  static I pair_dot(I acc, I pairs, const std::int16_t* x) noexcept {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, broadcast4(x)));
  }
  /// out[i] = in[2i] + in[2i + 1], i < 8.
  static void add_pairs(const std::int16_t* in, std::int16_t* out) noexcept {
    const auto* p = reinterpret_cast<const __m128i*>(in);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_hadd_epi16(_mm_loadu_si128(p), _mm_loadu_si128(p + 1)));
  }

  /// One int16 multiplier per row, twice over: madd multiplies pair sums by it and adds the pair for nothing more than their addition.
  using Scale = __m256i;
  static Scale even_scale(I pairs) noexcept {
    return _mm256_shuffle_epi8(
        pairs, _mm256_set_epi32(0x0D0C0D0C, 0x09080908, 0x05040504, 0x01000100, 0x0D0C0D0C, 0x09080908, 0x05040504, 0x01000100));
  }
  static Scale odd_scale(I pairs) noexcept {
    return _mm256_shuffle_epi8(
        pairs, _mm256_set_epi32(0x0F0E0F0E, 0x0B0A0B0A, 0x07060706, 0x03020302, 0x0F0E0F0E, 0x0B0A0B0A, 0x07060706, 0x03020302));
  }

  /// What a product takes: 8-bit weights go in as magnitudes, their signs onto x.
  struct Signed {
    B weights;
    B magnitudes;
  };
  template <int kBits>
  static constexpr std::size_t kOperandBytes = kBits == 8 ? 2 * kBytes : kBytes;
  template <int kBits>
  static auto load_operand(const std::byte* p) noexcept {
    if constexpr (kBits == 8) {
      return Signed{load_bytes(p), load_bytes(p + kBytes)};
    } else {
      return load_bytes(p);
    }
  }
  template <int kBits>
  static void store_operand(std::byte* p, B chunk) noexcept {
    if constexpr (kBits == 8) {
      const Signed both = signed_of(chunk);
      _mm256_store_si256(reinterpret_cast<__m256i*>(p), both.weights);
      _mm256_store_si256(reinterpret_cast<__m256i*>(p + kBytes), both.magnitudes);
    } else {
      _mm256_store_si256(reinterpret_cast<__m256i*>(p), chunk);
    }
  }

  /// acc[s][t] += dot of kChunks chunks of sub-tile s with x[t]. chunk.get<c>(s) gives the weights of chunk c, unsigned, below 2^kBits,
  /// 8-bit ones signed with the sign bit flipped; or gives them as operands.
  template <int kBits, int kChunks, int kSubs, int kTokenCount, class Chunk>
  [[gnu::always_inline]] static void dot(const Chunk& chunk, const std::int8_t* const (&x)[kTokenCount], I (&acc)[kSubs][kTokenCount]) {
    Scale ones[kSubs];
    for (auto& one : ones) one = _mm256_set1_epi16(1);
    scaled_dot<kBits, kChunks>(chunk, x, ones, acc);
  }

  /// acc[s][t] += scale[s] * dot.
  template <int kBits, int kChunks, int kSubs, int kTokenCount, class Chunk>
  [[gnu::always_inline]] static void scaled_dot(const Chunk& chunk, const std::int8_t* const (&x)[kTokenCount], const Scale (&scale)[kSubs],
                                                I (&acc)[kSubs][kTokenCount]) {
    // Chunks whose products fit int16 together: each lane adds two products a chunk, of at most (2^kBits - 1) x 127.
    constexpr int kRun = kBits <= 2 ? 32 : kBits >= 7 ? 1 : 1 << (7 - kBits);
    constexpr int kRunChunks = kRun < kChunks ? kRun : kChunks;
    static_assert(kBits == 8 || kRun * 2 * ((1 << kBits) - 1) * 127 <= 32767);
    generic::repeat<kChunks / kRunChunks>([&](auto run) __attribute__((always_inline)) {
      __m256i sums[kSubs][kTokenCount];
      generic::repeat<kRunChunks>([&](auto i) __attribute__((always_inline)) {
        constexpr int c = run * kRunChunks + i;
        add_chunk<kBits, i == 0, kSubs, kTokenCount, c>(chunk, x, sums);
      });
      for (int s = 0; s < kSubs; ++s) {
        for (int t = 0; t < kTokenCount; ++t) {
          acc[s][t] = _mm256_add_epi32(acc[s][t], _mm256_madd_epi16(sums[s][t], scale[s]));
          keep_order(acc[s][t]);
        }
      }
    });
  }

 private:
  /// Pins a running sum where it is: otherwise GCC turns the chain of additions into a tree, whose leaves do not fit the registers.
  static void keep_order(__m256i& sum) noexcept { asm("" : "+x"(sum)); }

  static __m256i broadcast4(const void* p) noexcept {
    std::int32_t word;
    std::memcpy(&word, p, sizeof(word));
    return _mm256_set1_epi32(word);
  }

  static Signed signed_of(B flipped) noexcept {
    const B weights = _mm256_xor_si256(flipped, _mm256_set1_epi8(-128));
    return {weights, _mm256_abs_epi8(weights)};
  }
  static Signed signed_of(Signed operand) noexcept { return operand; }

  /// Pair products of one chunk, as int16: 128 x 127 x 2 = 32512 fits.
  template <int kBits, bool kFirst, int kSubs, int kTokenCount, int kChunk, class Chunk>
  [[gnu::always_inline]] static void add_chunk(const Chunk& chunk, const std::int8_t* const (&x)[kTokenCount],
                                               __m256i (&sums)[kSubs][kTokenCount]) {
    B weights[kSubs];
    [[maybe_unused]] B magnitudes[kSubs];
    for (int s = 0; s < kSubs; ++s) {
      if constexpr (kBits == 8) {
        const Signed both = signed_of(chunk.template get<kChunk>(s));
        weights[s] = both.weights;
        magnitudes[s] = both.magnitudes;
      } else {
        weights[s] = chunk.template get<kChunk>(s);
      }
    }
    for (int t = 0; t < kTokenCount; ++t) {
      const __m256i x4 = broadcast4(x[t] + 4 * kChunk);
      for (int s = 0; s < kSubs; ++s) {
        __m256i products;
        if constexpr (kBits == 8) {
          products = _mm256_maddubs_epi16(magnitudes[s], _mm256_sign_epi8(x4, weights[s]));
        } else {
          products = _mm256_maddubs_epi16(weights[s], x4);
        }
        sums[s][t] = kFirst ? products : _mm256_add_epi16(sums[s][t], products);
        keep_order(sums[s][t]);
      }
    }
  }
};

}  // namespace quench::avx2
