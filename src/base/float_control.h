#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quench {

/// Sets the floating-point control that the numeric contract assumes (round to nearest even, no flush to zero, exceptions masked:
/// MXCSR 0x1F80, FPCR 0) and restores the caller's on destruction. Every worker and every API entry holds one.
class ScopedFloatControl {
 public:
  ScopedFloatControl() noexcept : saved_(read()) { write(kContract); }
  ScopedFloatControl(const ScopedFloatControl&) = delete;
  ScopedFloatControl& operator=(const ScopedFloatControl&) = delete;
  ~ScopedFloatControl() { write(saved_); }

 private:
#if defined(__x86_64__)
  using Word = std::uint32_t;
  static constexpr Word kContract = 0x1F80;
  static Word read() noexcept { return _mm_getcsr(); }
  static void write(Word word) noexcept { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = std::uint64_t;
  static constexpr Word kContract = 0;
  static Word read() noexcept {
    Word word = 0;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void write(Word word) noexcept { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
#error "quench runs on x86-64 and aarch64"
#endif
  Word saved_;
};

}  // namespace quench
