#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu.h"
#include "base/float16.h"
#include "kernels/attention.h"
#include "quant/format.h"

namespace quench {

class Activations;

/// Tiles of 16 output rows against `n_tokens` activation rows.
/// tile     as PackedMatrix lays it out: the first of n_tiles, tile_bytes apart; one, unless KernelTable::tiles_for allows more
/// x        activations of the format's kind, rows [first_token, first_token + n_tokens)
/// out      out[t * out_stride + r], r in [0, 16 n_tiles): f32; written, not added to
struct LinearTile {
  const std::byte* tile;
  std::size_t columns;
  const Activations* x;
  std::size_t first_token;
  std::size_t n_tokens;
  float* out;
  std::size_t out_stride;
  std::size_t n_tiles = 1;
  std::size_t tile_bytes = 0;
};
using LinearKernel = void (*)(const LinearTile&) noexcept;

inline constexpr std::size_t kFormatSlots = 64;

/// How the tokens of a product are cut for one set of kernels (kernels/linear.cpp).
struct TokenBlocking {
  /// Kernels take tokens in groups of at most this many, up to kMaxTokenGroup; a block that is a multiple leaves no remainder inside.
  std::size_t group = 12;
  /// A block's activations and an item's weights share a core's L2 (512 KiB on Zen 3, the smallest in use here), with room left for the
  /// results: the weights are read once from memory and then once per token block from L2, the activations once per tile from L2.
  std::size_t activation_bytes = 192 << 10;
  /// Kernels take 16 tokens at once and want their scales side by side (Activations::unit_scales).
  bool units = false;
};
inline constexpr std::size_t kMaxTokenGroup = 32;

enum class RopeStyle {
  kHalf,        ///< channel i pairs with i + n/2 (NeoX: qwen, gemma)
  kInterleaved  ///< channel 2i pairs with 2i + 1 (llama)
};

/// The kernels of one instruction set. Every entry equals the one of spec bit for bit; none allocates, validates or throws.
struct KernelTable {
  Isa isa = Isa::kScalar;
  const char* name = "scalar";

  std::array<LinearKernel, kFormatSlots> linear{};  ///< by Format number; null = not a format
  /// A tile of 16 x 16 results costs as much for one token as for 16: with fewer tokens than few_tokens, linear_few runs. Same bits.
  std::array<LinearKernel, kFormatSlots> linear_few{};
  std::array<std::uint8_t, kFormatSlots> few_tokens{};
  /// Tiles that an entry of `linear` may be given at once, sharing the loads of activations; 0 = one.
  std::array<std::uint8_t, kFormatSlots> max_tiles{};
  TokenBlocking blocking;

  [[nodiscard]] LinearKernel linear_for(Format format, std::size_t n_tokens) const noexcept {
    const auto slot = static_cast<std::size_t>(format);
    return n_tokens < few_tokens[slot] ? linear_few[slot] : linear[slot];
  }

  [[nodiscard]] std::size_t tiles_for(Format format, std::size_t n_tokens) const noexcept {
    const auto slot = static_cast<std::size_t>(format);
    return n_tokens < few_tokens[slot] || max_tiles[slot] == 0 ? 1 : max_tiles[slot];
  }

  /// n is a multiple of 32 (256). sums: one per 16.
  void (*quantize_block32)(const float* x, std::size_t n, std::int8_t* quants, float* scales, std::int16_t* sums) noexcept = nullptr;
  void (*quantize_block256)(const float* x, std::size_t n, std::int8_t* quants, float* scales, std::int16_t* sums) noexcept = nullptr;
  void (*round_bf16)(const float* x, std::size_t n, BF16* out) noexcept = nullptr;

  /// out[i] = (x[i] * (1 / sqrt(mean(x^2) + eps))) * weight[i]; the mean from 16 strided partial sums and a pairwise fold. weight may be
  /// null (ones). out may be x.
  void (*rms_norm)(const float* x, const float* weight, std::size_t n, float eps, float* out) noexcept = nullptr;
  /// Rotates the first n_rot channels of one head in place. cos, sin: [n_rot / 2].
  /// a' = fma(a, cos, -(b * sin)), b' = fma(a, sin, b * cos).
  void (*rope)(float* head, const float* cos, const float* sin, std::size_t n_rot, RopeStyle style) noexcept = nullptr;
  void (*add)(float* x, const float* y, std::size_t n) noexcept = nullptr;  ///< x += y
  void (*scale)(float* x, float factor, std::size_t n) noexcept = nullptr;  ///< x *= factor
  void (*silu_mul)(const float* gate, const float* up, std::size_t n,
                   float* out) noexcept = nullptr;  ///< out = (gate * sigmoid(gate)) * up
  void (*gelu_mul)(const float* gate, const float* up, std::size_t n, float* out) noexcept = nullptr;  ///< tanh form of GELU, times up
  void (*soft_cap)(float* x, float cap, std::size_t n) noexcept = nullptr;                             ///< x = cap * tanh(x / cap)
  void (*sigmoid)(float* x, std::size_t n) noexcept = nullptr;                                         ///< x = 1 / (1 + exp(-x))
  /// x[i] = exp(x[i] - max) / sum; maximum and sum from 16 strided partial results and a pairwise fold. n > 0.
  void (*softmax)(float* x, std::size_t n) noexcept = nullptr;
  void (*add_scaled)(float* x, float factor, const float* y, std::size_t n) noexcept = nullptr;  ///< x = fma(factor, y, x)

  /// KV cache and attention: kernels/attention.h.
  std::array<CacheKernels, kCacheTypes.size()> caches{};  ///< by CacheType
  [[nodiscard]] const CacheKernels& cache(CacheType type) const noexcept { return caches[static_cast<std::size_t>(type)]; }
  /// Queries for a q8_0 cache, in blocks of 32 channels: d = absmax / 32767, q = round-half-even(x / d) within +-32767, d = 0 gives 0.
  /// 16 bits: at 8 the query's own rounding cost a quarter of what the cache's does. n is a multiple of 32.
  void (*quantize_queries)(const float* x, std::size_t n, std::int16_t* quants, float* scales) noexcept = nullptr;
  /// Folds one more page's result into the running one, pages in ascending order: on the first page (state.max = kNoScore) a copy; else
  ///   M = max(max, m), a = exp(max - M), b = exp(m - M), sum = fma(l, b, sum * a), out[d] = fma(o[d], b, out[d] * a), max = M.
  void (*fold_attention)(AttentionState& state, float* out, const AttentionState& page, const float* page_out,
                         std::size_t head_dim) noexcept = nullptr;
  void (*finish_attention)(float* out, float sum, std::size_t head_dim) noexcept = nullptr;  ///< out[d] = out[d] / sum

  /// Not operations of a model but measures of the processor (kernels/operation_probe.h): `rounds` rounds of the widest int8 dot product or
  /// f32 fma, operands in registers. They return how many operations that was, a multiplication and an addition being two. Null = none.
  std::uint64_t (*int8_dot_peak)(std::size_t rounds) noexcept = nullptr;
  std::uint64_t (*f32_fma_peak)(std::size_t rounds) noexcept = nullptr;
  std::uint64_t (*bf16_dot_peak)(std::size_t rounds) noexcept = nullptr;  ///< null where bf16 runs in f32 fma
};

/// The kernels for an ISA that isa_available() allows.
[[nodiscard]] const KernelTable& kernels_for(Isa isa);

/// Which code an entry of a table runs: an operation that an instruction set has no kernel for runs the scalar one, on tiles that of
/// avx512.
struct KernelPath {
  std::string operation;  ///< "rms_norm", "linear q4_K", ...
  std::string path;       ///< the table's name, another's, or "amx; avx512 for fewer than 6 tokens"
};
/// One per entry, in the order of the table; formats without a kernel anywhere are left out. For `quench info`.
[[nodiscard]] std::vector<KernelPath> kernel_paths(const KernelTable& table);

}  // namespace quench
