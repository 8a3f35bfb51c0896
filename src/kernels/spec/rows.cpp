#include <cmath>
#include <limits>
#include <utility>

#include "kernels/fillers.h"
#include "kernels/spec/exp.h"
#include "kernels/spec/row_sum.h"

// The definition of every operation on one row. Each line is one rounding; every other instruction set gives the same bits.

namespace quench::spec {
namespace {

void rms_norm(const float* x, const float* weight, std::size_t n, float eps, float* out) noexcept {
  Partials squares{};
  for (std::size_t i = 0; i < n; ++i) squares[i % 16] = __builtin_fmaf(x[i], x[i], squares[i % 16]);
  const float mean = fold_sum(squares) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  for (std::size_t i = 0; i < n; ++i) {
    const float normed = x[i] * inverse;
    out[i] = weight == nullptr ? normed : normed * weight[i];
  }
}

void rope(float* head, const float* cos, const float* sin, std::size_t n_rot, RopeStyle style) noexcept {
  const std::size_t pairs = n_rot / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    float& first = style == RopeStyle::kHalf ? head[i] : head[2 * i];
    float& second = style == RopeStyle::kHalf ? head[i + pairs] : head[2 * i + 1];
    const float a = first;
    const float b = second;
    first = __builtin_fmaf(a, cos[i], -(b * sin[i]));
    second = __builtin_fmaf(a, sin[i], b * cos[i]);
  }
}

void add(float* x, const float* y, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) x[i] = x[i] + y[i];
}

void scale(float* x, float factor, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) x[i] = x[i] * factor;
}

void silu_mul(const float* gate, const float* up, std::size_t n, float* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = silu(gate[i]) * up[i];
}

void gelu_mul(const float* gate, const float* up, std::size_t n, float* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = gelu(gate[i]) * up[i];
}

void soft_cap_row(float* x, float cap, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) x[i] = soft_cap(x[i], cap);
}

void sigmoid_row(float* x, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) x[i] = sigmoid(x[i]);
}

void softmax(float* x, std::size_t n) noexcept {
  Partials maxima;
  maxima.fill(-std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < n; ++i) maxima[i % 16] = maxima[i % 16] > x[i] ? maxima[i % 16] : x[i];
  const float max = fold_max(maxima);
  Partials sums{};
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = exp(x[i] - max);
    sums[i % 16] = sums[i % 16] + x[i];
  }
  const float sum = fold_sum(sums);
  for (std::size_t i = 0; i < n; ++i) x[i] = x[i] / sum;
}

void add_scaled(float* x, float factor, const float* y, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) x[i] = __builtin_fmaf(factor, y[i], x[i]);
}

}  // namespace

void fill_rows(KernelTable& table) {
  table.rms_norm = rms_norm;
  table.rope = rope;
  table.add = add;
  table.scale = scale;
  table.silu_mul = silu_mul;
  table.gelu_mul = gelu_mul;
  table.soft_cap = soft_cap_row;
  table.sigmoid = sigmoid_row;
  table.softmax = softmax;
  table.add_scaled = add_scaled;
}

}  // namespace quench::spec
