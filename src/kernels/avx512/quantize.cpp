#include "kernels/generic/quantize.h"

#include "kernels/avx512/lanes.h"
#include "kernels/fillers.h"
#include "kernels/generic/row_sum.h"

namespace quench::avx512 {
namespace {

constexpr std::size_t kChunk = 64;  ///< elements whose quants fill a register

/// x / d for |x| <= 127 d, as division rounds it, of four registers whose steps do not wait for each other.
///
/// y = RN(1 / d) and two corrections by exact residuals: after the first the quotient is within an ulp, and then the second rounds as
/// division does (Markstein 1990, theorem 5), as long as nothing is subnormal or overflows. A division takes 16 cycles, this takes 2.5.
class Quotients {
 public:
  explicit Quotients(float divisor) noexcept
      : corrected_(divisor > 0x1p-80f && divisor < 0x1p100f),
        zero_(divisor == 0.0f),
        d_(Lanes::set1(divisor)),
        y_(Lanes::set1(1.0f / divisor)) {}

  /// Rounded to whole numbers within +-127.
  [[gnu::always_inline]] __m512i round(__m512 x) const noexcept {
    if (corrected_) [[likely]] {
      __m512 q = Lanes::mul(x, y_);
      q = Lanes::fma(residual(q, x), y_, q);
      q = Lanes::fma(residual(q, x), y_, q);
      return Lanes::round_to_int(q);
    }
    const __m512 ratio = zero_ ? Lanes::zero() : Lanes::div(x, d_);
    return Lanes::round_to_int(Lanes::max(Lanes::min(ratio, Lanes::set1(127.0f)), Lanes::set1(-127.0f)));
  }

 private:
  [[gnu::always_inline]] __m512 residual(__m512 q, __m512 x) const noexcept { return _mm512_fnmadd_ps(q, d_, x); }

  bool corrected_;
  bool zero_;
  __m512 d_;
  __m512 y_;
};

/// The quants of 64 elements, of which two registers each belong to one scale, and the sums of each 16.
[[gnu::always_inline]] inline void quantize_chunk(const float* x, const Quotients& first, const Quotients& second, std::int8_t* quants,
                                                  std::int16_t* sums) noexcept {
  const __m512i a = first.round(Lanes::loadu(x));
  const __m512i b = first.round(Lanes::loadu(x + 16));
  const __m512i c = second.round(Lanes::loadu(x + 32));
  const __m512i d = second.round(Lanes::loadu(x + 48));
  // Packing works within 128 bits: word 4 i + j of the result holds four elements of register j.
  const __m512i packed = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i bytes = _mm512_permutexvar_epi32(order, packed);
  _mm512_storeu_si512(quants, bytes);
  __m512i fours = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), bytes);
  const __m512i neighbours = _mm512_set_epi32(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1);
  fours = _mm512_add_epi32(fours, _mm512_permutexvar_epi32(neighbours, fours));
  const __m512i others = _mm512_set_epi32(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2);
  fours = _mm512_add_epi32(fours, _mm512_permutexvar_epi32(others, fours));
  const __m512i firsts = _mm512_set_epi32(12, 8, 4, 0, 12, 8, 4, 0, 12, 8, 4, 0, 12, 8, 4, 0);
  const __m128i sixteens = _mm512_castsi512_si128(_mm512_permutexvar_epi32(firsts, fours));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(sums), _mm_packs_epi32(sixteens, sixteens));
}

template <std::size_t kBlock>
[[gnu::always_inline]] inline float scale_of(const float* x) noexcept {
  generic::Partials<Lanes> most(0.0f);
  for (std::size_t i = 0; i < kBlock; i += 16) most.lanes[0] = Lanes::max(Lanes::abs(Lanes::loadu(x + i)), most.lanes[0]);
  return most.fold_max() / 127.0f;
}

void quantize_block256(const float* x, std::size_t n, std::int8_t* quants, float* scales, std::int16_t* sums) noexcept {
  for (std::size_t k = 0; k < n; k += 256) {
    const float d = scales[k / 256] = scale_of<256>(x + k);
    const Quotients quotients(d);
    for (std::size_t i = k; i < k + 256; i += kChunk) quantize_chunk(x + i, quotients, quotients, quants + i, sums + i / 16);
  }
}

void quantize_block32(const float* x, std::size_t n, std::int8_t* quants, float* scales, std::int16_t* sums) noexcept {
  std::size_t k = 0;
  for (; k + kChunk <= n; k += kChunk) {
    const float first = scales[k / 32] = scale_of<32>(x + k);
    const float second = scales[k / 32 + 1] = scale_of<32>(x + k + 32);
    quantize_chunk(x + k, Quotients(first), Quotients(second), quants + k, sums + k / 16);
  }
  generic::Quantize<Lanes>::blocks<32>(x + k, n - k, quants + k, scales + k / 32, sums + k / 16);
}

}  // namespace

void fill_quantize(KernelTable& table) {
  generic::Quantize<Lanes>::fill(table);
  table.quantize_block32 = quantize_block32;
  table.quantize_block256 = quantize_block256;
}

}  // namespace quench::avx512
