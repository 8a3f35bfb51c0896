#include "quant/float_formats.h"

#include <cstring>

#include "base/float16.h"
#include "quant/block_layout.h"

namespace quench {

void decode_f32(const std::byte* blocks, std::size_t n_blocks, float* out) noexcept { std::memcpy(out, blocks, n_blocks * sizeof(float)); }

void decode_f16(const std::byte* blocks, std::size_t n_blocks, float* out) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) out[i] = to_f32(load_block<F16>(blocks + i * sizeof(F16)));
}

void decode_bf16(const std::byte* blocks, std::size_t n_blocks, float* out) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) out[i] = to_f32(load_block<BF16>(blocks + i * sizeof(BF16)));
}

void encode_f32(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  std::memcpy(blocks, values, n_blocks * sizeof(float));
}

void encode_f16(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) store_block(to_f16_saturate(values[i]), blocks + i * sizeof(F16));
}

void encode_bf16(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i < n_blocks; ++i) store_block(to_bf16(values[i]), blocks + i * sizeof(BF16));
}

}  // namespace quench
