#pragma once

#include <cstddef>

#include "kernels/amx/tile_shape.h"

#ifdef QUENCH_EMULATE_AMX
#include "kernels/amx/emulated/emulated_tiles.h"
#endif

namespace quench::amx {

/// The tile instructions that the kernels use; tile numbers are fixed in the code. All bytes go through memory, stride in bytes.
#ifndef QUENCH_EMULATE_AMX
// Inline assembly and not the intrinsics: GCC 12's do not say that a load reads memory, so the stores before it may be dropped or come
// later. No compiler uses a tile register on its own.
struct Tiles {
  static void configure(const TileConfig& config) noexcept { configure_tiles(config); }

  template <int kTile>
  [[gnu::always_inline]] static void zero() noexcept {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  [[gnu::always_inline]] static void load(const void* from, std::size_t stride) noexcept {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(from), "r"(stride) : "memory");
  }
  template <int kTile>
  [[gnu::always_inline]] static void store(void* to, std::size_t stride) noexcept {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(to), "r"(stride) : "memory");
  }
  /// C += A B, int8: signed activations with signed weights.
  template <int kC, int kA, int kB>
  [[gnu::always_inline]] static void dot_signed() noexcept {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
  /// C += A B, signed activations with unsigned weights.
  template <int kC, int kA, int kB>
  [[gnu::always_inline]] static void dot_unsigned() noexcept {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
  /// C += A B, pairs of bf16 with f32 sums: two fma chains a group of 32, flushing subnormals (docs/numeric-contract.md).
  template <int kC, int kA, int kB>
  [[gnu::always_inline]] static void dot_bf16() noexcept {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
};
#else
struct Tiles {
  static void configure(const TileConfig& config) noexcept { EmulatedTiles::of_thread().configure(config); }

  template <int kTile>
  static void zero() noexcept {
    EmulatedTiles::of_thread().zero(kTile);
  }
  template <int kTile>
  static void load(const void* from, std::size_t stride) noexcept {
    EmulatedTiles::of_thread().load(kTile, from, stride);
  }
  template <int kTile>
  static void store(void* to, std::size_t stride) noexcept {
    EmulatedTiles::of_thread().store(kTile, to, stride);
  }
  template <int kC, int kA, int kB>
  static void dot_signed() noexcept {
    EmulatedTiles::of_thread().dot_signed(kC, kA, kB);
  }
  template <int kC, int kA, int kB>
  static void dot_unsigned() noexcept {
    EmulatedTiles::of_thread().dot_unsigned(kC, kA, kB);
  }
  template <int kC, int kA, int kB>
  static void dot_bf16() noexcept {
    EmulatedTiles::of_thread().dot_bf16(kC, kA, kB);
  }
};
#endif

}  // namespace quench::amx
