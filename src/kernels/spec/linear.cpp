#include <cmath>
#include <cstring>

#include "kernels/activations.h"
#include "kernels/fillers.h"
#include "kernels/packed_matrix.h"
#include "kernels/packing/layout.h"
#include "quant/integer_form.h"

/// The definition of the linear layers (docs/numeric-contract.md): one f32 accumulator per output, from +0, over k in ascending order.
/// It goes through the file's own blocks and their integer form, and knows nothing of how a tile is laid out.
namespace quench::spec {
namespace {

using TileForms = std::array<IntegerBlock, kTileRows>;

void load_forms(const LinearTile& job, const FormatInfo& info, std::size_t block, TileForms& forms) noexcept {
  const PackLayout& layout = pack_layout(info.format);
  std::array<std::byte, kMaxBlockBytes> bytes;
  for (std::size_t row = 0; row < kTileRows; ++row) {
    layout.unpack_block(job.tile, job.columns, row, block, bytes.data());
    info.unpack(bytes.data(), forms[row]);
  }
}

std::int32_t dot(const std::int8_t* a, const std::int8_t* b, std::size_t n) noexcept {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::int32_t{a[i]} * std::int32_t{b[i]};
  return sum;
}

std::int32_t sum_of(const std::int8_t* a, std::size_t n) noexcept {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i];
  return sum;
}

/// One block of a kBlock format: quants of x and their scales, one per 32, both at the start of the block.
float add_groups(const IntegerBlock& w, const IntegerShape& shape, const std::int8_t* x, const float* x_scales, float acc) noexcept {
  const auto group = static_cast<std::size_t>(shape.group_elements);
  for (std::size_t g = 0; g < static_cast<std::size_t>(shape.block_elements) / group; ++g) {
    const float x_scale = x_scales[g * group / 32];
    const std::size_t k = g * group;
    acc = std::fma(w.scale[g] * x_scale, static_cast<float>(dot(w.quants.data() + k, x + k, group)), acc);
    if (shape.has_min) acc = std::fma(w.min[g], x_scale * static_cast<float>(sum_of(x + k, group)), acc);
  }
  return acc;
}

/// One super-block, with the one scale that its activations have.
float add_super_block(const IntegerBlock& w, const IntegerShape& shape, const std::int8_t* x, float x_scale, float acc) noexcept {
  const auto sub = static_cast<std::size_t>(shape.sub_elements);
  std::int32_t dots = 0;
  std::int32_t mins = 0;
  for (std::size_t j = 0; j < static_cast<std::size_t>(shape.block_elements) / sub; ++j) {
    dots += w.sub_scale[j] * dot(w.quants.data() + j * sub, x + j * sub, sub);
    if (shape.has_min) mins += w.sub_min[j] * sum_of(x + j * sub, sub);
  }
  acc = std::fma(w.scale[0] * x_scale, static_cast<float>(dots), acc);
  if (shape.has_min) acc = std::fma(-(w.min[0] * x_scale), static_cast<float>(mins), acc);
  return acc;
}

void integer_tile(const LinearTile& job, const FormatInfo& info) noexcept {
  const IntegerShape& shape = info.shape;
  const auto block_elements = static_cast<std::size_t>(shape.block_elements);
  for (std::size_t t = 0; t < job.n_tokens; ++t) std::memset(job.out + t * job.out_stride, 0, kTileRows * sizeof(float));
  TileForms forms;
  for (std::size_t block = 0; block < job.columns / block_elements; ++block) {
    load_forms(job, info, block, forms);
    const std::size_t k = block * block_elements;
    for (std::size_t t = 0; t < job.n_tokens; ++t) {
      const std::int8_t* x = job.x->quants_row(job.first_token + t) + k;
      const float* scales = job.x->scales_row(job.first_token + t);
      float* out = job.out + t * job.out_stride;
      for (std::size_t row = 0; row < kTileRows; ++row) {
        out[row] = info.arithmetic == Arithmetic::kBlock ? add_groups(forms[row], shape, x, scales + k / 32, out[row])
                                                         : add_super_block(forms[row], shape, x, scales[k / 256], out[row]);
      }
    }
  }
}

/// f32 and f16.
void float_tile(const LinearTile& job, const FormatInfo& info) noexcept {
  const PackLayout& layout = pack_layout(info.format);
  std::array<std::byte, sizeof(float)> element;
  for (std::size_t t = 0; t < job.n_tokens; ++t) std::memset(job.out + t * job.out_stride, 0, kTileRows * sizeof(float));
  for (std::size_t k = 0; k < job.columns; ++k) {
    for (std::size_t row = 0; row < kTileRows; ++row) {
      float w = 0.0f;
      layout.unpack_block(job.tile, job.columns, row, k, element.data());
      info.decode(element.data(), 1, &w);
      for (std::size_t t = 0; t < job.n_tokens; ++t) {
        float& acc = job.out[t * job.out_stride + row];
        acc = std::fma(w, job.x->f32_row(job.first_token + t)[k], acc);
      }
    }
  }
}

/// A bf16 weight as the product sees it: below 2^-56 is zero.
float bf16_weight(const LinearTile& job, std::size_t row, std::size_t k) noexcept {
  BF16 w;
  pack_layout(Format::kBF16).unpack_block(job.tile, job.columns, row, k, reinterpret_cast<std::byte*>(&w));
  return std::fabs(to_f32(w)) < 0x1p-56f ? 0.0f : to_f32(w);
}

/// Per 32 k: two fma chains from zero, over the even and over the odd elements, whose sum is added to the accumulator. A last group of
/// fewer is filled up with zeros, which change nothing.
void bf16_tile(const LinearTile& job) noexcept {
  constexpr std::size_t kGroup = 32;
  std::array<float, kGroup> w;
  for (std::size_t t = 0; t < job.n_tokens; ++t) std::memset(job.out + t * job.out_stride, 0, kTileRows * sizeof(float));
  for (std::size_t k = 0; k < job.columns; k += kGroup) {
    for (std::size_t row = 0; row < kTileRows; ++row) {
      for (std::size_t i = 0; i < kGroup; ++i) w[i] = k + i < job.columns ? bf16_weight(job, row, k + i) : 0.0f;
      for (std::size_t t = 0; t < job.n_tokens; ++t) {
        const BF16* x = job.x->bf16_row(job.first_token + t) + k;
        float even = 0.0f;
        float odd = 0.0f;
        for (std::size_t i = 0; i < kGroup; i += 2) {
          even = std::fma(w[i], to_f32(x[i]), even);
          odd = std::fma(w[i + 1], to_f32(x[i + 1]), odd);
        }
        float& acc = job.out[t * job.out_stride + row];
        acc = acc + (even + odd);
      }
    }
  }
}

template <Format kFormat>
void tile_kernel(const LinearTile& job) noexcept {
  const FormatInfo& info = format_info(kFormat);
  if constexpr (kFormat == Format::kBF16) {
    bf16_tile(job);
  } else if (info.arithmetic == Arithmetic::kFloat) {
    float_tile(job, info);
  } else {
    integer_tile(job, info);
  }
}

template <Format... kFormats>
void fill(std::array<LinearKernel, kFormatSlots>& linear) {
  ((linear[static_cast<std::size_t>(kFormats)] = tile_kernel<kFormats>), ...);
}

}  // namespace

void fill_linear(KernelTable& table) {
  auto& linear = table.linear;
  fill<Format::kF32, Format::kF16, Format::kBF16>(linear);
  fill<Format::kQ4_0, Format::kQ4_1, Format::kQ5_0, Format::kQ5_1, Format::kQ8_0, Format::kQ1_0, Format::kQ2_0>(linear);
  fill<Format::kIq4_NL, Format::kMxfp4, Format::kNvfp4>(linear);
  fill<Format::kQ2_K, Format::kQ3_K, Format::kQ4_K, Format::kQ5_K, Format::kQ6_K, Format::kTq1_0, Format::kTq2_0>(linear);
  fill<Format::kIq1_S, Format::kIq1_M, Format::kIq2_XXS, Format::kIq2_XS, Format::kIq2_S, Format::kIq3_XXS, Format::kIq3_S,
       Format::kIq4_XS>(linear);
}

}  // namespace quench::spec
