#include <string>
#include <vector>

#include "base/random.h"
#include "kernel_check.h"
#include "kernels/linear.h"
#include "quant/random_blocks.h"

namespace quench::kernel_check {
namespace {

std::vector<float> product(const KernelTable& kernels, ThreadPool& pool, const PackedMatrix& matrix, const std::vector<float>& x) {
  const Compute compute{kernels, pool};
  const std::size_t tokens = x.size() / matrix.columns();
  Activations activations(tokens, matrix.columns());
  activations.assign(compute, activation_kind(matrix.format()), x.data(), tokens, matrix.columns(), matrix.columns());
  std::vector<float> out(tokens * matrix.rows());
  linear(compute, matrix, activations, out.data(), matrix.rows());
  return out;
}

bool check_format(const FormatInfo& info, const KernelTable& kernels, const KernelTable& scalar) {
  Xoshiro256 random(11);
  ThreadPool pool(1);
  const auto block = static_cast<std::size_t>(info.block_elements);
  for (const std::size_t rows : {1u, 16u, 37u}) {
    for (const std::size_t target : {33u, 512u}) {
      const std::size_t columns = (target + block - 1) / block * block;
      std::vector<std::byte> file(rows * *row_bytes(info.format, columns));
      random_blocks(info.format, random, rows * columns / block, 0.05f, file.data());
      PackedMatrix matrix(info.format, rows, columns, "check");
      matrix.pack_rows(0, file);
      for (const std::size_t tokens : {1u, 2u, 7u}) {
        std::vector<float> x(tokens * columns);
        for (float& v : x) v = static_cast<float>(random.uniform() * 8 - 4);
        const std::string what = std::string(info.name) + " " + std::to_string(rows) + " x " + std::to_string(columns);
        if (!same_bits(what.c_str(), product(kernels, pool, matrix, x), product(scalar, pool, matrix, x))) return false;
      }
    }
  }
  return true;
}

bool check_linear(const KernelTable& kernels, const KernelTable& scalar) {
  for (const FormatInfo& info : all_formats()) {
    if (!check_format(info, kernels, scalar)) return false;
  }
  return true;
}

bool check_quantize(const KernelTable& kernels, const KernelTable& scalar) {
  Xoshiro256 random(12);
  constexpr std::size_t kN = 1024;
  std::vector<float> x(kN);
  std::vector<std::int8_t> quants[2];
  std::vector<std::int16_t> sums[2];
  std::vector<float> scales[2];
  for (int round = 0; round < 100; ++round) {
    for (float& v : x) v = std::ldexp(static_cast<float>(random.uniform() * 2 - 1), static_cast<int>(random.below(276)) - 149);
    if (round % 2 == 0) x[random.below(kN)] = std::ldexp(100.0f, -149);
    for (const bool large : {false, true}) {
      for (int side = 0; side < 2; ++side) {
        const KernelTable& table = side == 0 ? kernels : scalar;
        quants[side].assign(kN, 0);
        sums[side].assign(kN / kSumElements, 0);
        scales[side].assign(kN / 32, 0.0f);
        (large ? table.quantize_block256 : table.quantize_block32)(x.data(), kN, quants[side].data(), scales[side].data(),
                                                                   sums[side].data());
      }
      if (quants[0] != quants[1] || sums[0] != sums[1] || !same_bits("scales", scales[0], scales[1])) return false;
    }
    std::vector<BF16> rounded[2] = {std::vector<BF16>(kN), std::vector<BF16>(kN)};
    kernels.round_bf16(x.data(), kN - 3, rounded[0].data());
    scalar.round_bf16(x.data(), kN - 3, rounded[1].data());
    if (rounded[0] != rounded[1]) return false;
  }
  return true;
}

const Registration kLinear("linear", check_linear);
const Registration kQuantize("quantize", check_quantize);

}  // namespace
}  // namespace quench::kernel_check
