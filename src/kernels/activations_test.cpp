#include "kernels/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "kernels/compute.h"
#include "kernels/tables_under_test.h"

namespace quench {
namespace {

struct Quantized {
  std::vector<std::int8_t> quants;
  std::vector<float> scales;
  std::vector<std::int16_t> sums;
};

Quantized quantize(const KernelTable& kernels, std::size_t block, const std::vector<float>& x) {
  Quantized out{std::vector<std::int8_t>(x.size()), std::vector<float>(x.size() / block),
                std::vector<std::int16_t>(x.size() / kSumElements)};
  const auto kernel = block == 32 ? kernels.quantize_block32 : kernels.quantize_block256;
  kernel(x.data(), x.size(), out.quants.data(), out.scales.data(), out.sums.data());
  return out;
}

std::vector<const KernelTable*> every_table() {
  std::vector<const KernelTable*> tables = tables_under_test();
  tables.push_back(&kernels_for(Isa::kScalar));
  return tables;
}

TEST(QuantizeActivations, TiesGoToTheEvenQuant) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f;  // so that d = 1
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = 2.5f;
  x[4] = -0.5f;
  x[5] = -1.5f;
  x[6] = 126.5f;
  x[20] = -126.5f;
  for (const KernelTable* kernels : every_table()) {
    const Quantized q = quantize(*kernels, 32, x);
    EXPECT_EQ(q.scales[0], 1.0f) << kernels->name;
    const std::vector<std::int8_t> head(q.quants.begin(), q.quants.begin() + 7);
    EXPECT_EQ(head, (std::vector<std::int8_t>{127, 0, 2, 2, 0, -2, 126})) << kernels->name;
    EXPECT_EQ(q.quants[20], -126) << kernels->name;
    EXPECT_EQ(q.sums, (std::vector<std::int16_t>{127 + 2 + 2 - 2 + 126, -126})) << kernels->name;
  }
}

TEST(QuantizeActivations, AZeroBlockGivesZeros) {
  for (const KernelTable* kernels : every_table()) {
    const Quantized q = quantize(*kernels, 256, std::vector<float>(256, -0.0f));
    EXPECT_EQ(q.scales[0], 0.0f);
    EXPECT_EQ(q.quants, std::vector<std::int8_t>(256, 0));
    EXPECT_EQ(q.sums, std::vector<std::int16_t>(16, 0));
  }
}

TEST(QuantizeActivations, ASubnormalScaleNeverGoesBeyond127) {
  std::vector<float> x(32, std::ldexp(-180.0f, -149));  // 180 / 127 units round to a scale of one unit
  x[1] = std::ldexp(60.0f, -149);
  for (const KernelTable* kernels : every_table()) {
    const Quantized q = quantize(*kernels, 32, x);
    EXPECT_EQ(q.scales[0], std::ldexp(1.0f, -149));
    EXPECT_EQ(q.quants[0], -127);
    EXPECT_EQ(q.quants[1], 60);
  }
}

TEST(QuantizeActivations, EveryInstructionSetEqualsTheScalarDefinition) {
  Xoshiro256 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<float> x(512);
    for (float& v : x) {
      v = std::ldexp(static_cast<float>(random.uniform() * 2 - 1), round % 3 == 0 ? static_cast<int>(random.below(270)) - 145 : 0);
    }
    for (const std::size_t block : {32u, 256u}) {
      const Quantized want = quantize(kernels_for(Isa::kScalar), block, x);
      for (const KernelTable* kernels : tables_under_test()) {
        const Quantized got = quantize(*kernels, block, x);
        ASSERT_EQ(got.quants, want.quants) << kernels->name;
        ASSERT_EQ(got.sums, want.sums) << kernels->name;
        ASSERT_EQ(std::memcmp(got.scales.data(), want.scales.data(), want.scales.size() * sizeof(float)), 0) << kernels->name;
      }
    }
  }
}

/// Where a quotient that is off by an ulp rounds to another quant: halves of the step, and the numbers next to them.
TEST(QuantizeActivations, QuotientsAtTheHalvesRoundAsDivisionDoes) {
  Xoshiro256 random(12);
  for (int round = 0; round < 400; ++round) {
    std::vector<float> x(512);
    for (std::size_t begin = 0; begin < x.size(); begin += 32) {
      const float most = std::ldexp(static_cast<float>(1.0 + random.uniform()), static_cast<int>(random.below(240)) - 120);
      const float d = most / 127.0f;
      for (std::size_t i = begin; i < begin + 32; ++i) {
        float value = (static_cast<float>(random.below(126)) + 0.5f) * d;
        for (std::uint64_t steps = random.below(4); steps > 0; --steps) value = std::nextafter(value, random.below(2) == 0 ? 0.0f : most);
        x[i] = random.below(2) == 0 ? value : -value;
      }
      x[begin + random.below(32)] = most;
    }
    for (const std::size_t block : {32u, 256u}) {
      const Quantized want = quantize(kernels_for(Isa::kScalar), block, x);
      for (const KernelTable* kernels : tables_under_test()) ASSERT_EQ(quantize(*kernels, block, x).quants, want.quants) << kernels->name;
    }
  }
}

TEST(RoundActivations, Bf16RoundsToEvenAndFlushesBelowTheLimit) {
  const std::vector<float> x = {1.0f,      1.00390625f, 1.01171875f, 0x1p-56f,  0x1.FEp-57f, 0x1.FFp-57f,
                                -0x1p-57f, -0.0f,       3.5f,        -0x1p-56f, 1e-40f};
  // 1 + 2^-8 is a tie and goes down, 1 + 3 x 2^-8 is one and goes up; 0x1.FFp-57 rounds up to the limit and stays.
  const std::vector<std::uint16_t> want = {0x3F80, 0x3F80, 0x3F82, 0x2380, 0, 0x2380, 0, 0, 0x4060, 0xA380, 0};
  for (const KernelTable* kernels : every_table()) {
    std::vector<BF16> out(x.size());
    kernels->round_bf16(x.data(), x.size(), out.data());
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(out[i].bits, want[i]) << kernels->name << " " << x[i];
  }
}

TEST(Activations, UnitsHoldTheScalesAndSumsOfTheirRowsSideBySide) {
  Xoshiro256 random(3);
  constexpr std::size_t kRows = 37;
  constexpr std::size_t kColumns = 512;
  std::vector<float> x(kRows * kColumns);
  for (float& v : x) v = static_cast<float>(random.uniform() * 2 - 1);
  KernelTable kernels = kernels_for(Isa::kScalar);
  kernels.blocking.units = true;
  ThreadPool pool(2);
  for (const ActivationKind kind : {ActivationKind::kBlock32, ActivationKind::kBlock256}) {
    Activations activations(kRows, kColumns);
    activations.assign({kernels, pool}, kind, x.data(), kRows, kColumns, kColumns);
    for (std::size_t r = 0; r < kRows; ++r) {
      const UnitScales unit = activations.unit_scales(r / kUnitTokens);
      const std::size_t t = r % kUnitTokens;
      const float* scales = activations.scales_row(r);
      const std::int16_t* sums = activations.sums_row(r);
      const std::size_t blocks = kColumns / (kind == ActivationKind::kBlock32 ? 32 : 256);
      for (std::size_t b = 0; b < blocks; ++b) {
        ASSERT_EQ(unit.scales[b * kUnitTokens + t], scales[b]);
        if (kind == ActivationKind::kBlock32) {
          ASSERT_EQ(unit.sums[b * kUnitTokens + t], scales[b] * static_cast<float>(sums[2 * b] + sums[2 * b + 1]));
          continue;
        }
        for (std::size_t i = 0; i < 16; ++i) {
          ASSERT_EQ(unit.pairs[((b * 8 + i / 2) * kUnitTokens + t) * 2 + i % 2], sums[16 * b + i]);
          if (i % 2 == 0) {
            ASSERT_EQ(unit.pairs_of_32[((b * 4 + i / 4) * kUnitTokens + t) * 2 + i / 2 % 2], sums[16 * b + i] + sums[16 * b + i + 1]);
          }
        }
      }
    }
  }
}

TEST(Activations, RowsAreQuantizedOneByOneWhateverTheThreads) {
  Xoshiro256 random(2);
  constexpr std::size_t kRows = 70;
  constexpr std::size_t kColumns = 512;
  constexpr std::size_t kStride = 600;
  std::vector<float> x(kRows * kStride);
  for (float& v : x) v = static_cast<float>(random.uniform() * 2 - 1);
  const KernelTable& kernels = kernels_for(available_isas().back());
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Activations activations(kRows, kColumns);
    activations.assign({kernels, pool}, ActivationKind::kBlock256, x.data(), kRows, kColumns, kStride);
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::vector<float> row(x.begin() + static_cast<std::ptrdiff_t>(r * kStride),
                                   x.begin() + static_cast<std::ptrdiff_t>(r * kStride + kColumns));
      const Quantized want = quantize(kernels, 256, row);
      ASSERT_EQ(std::memcmp(activations.quants_row(r), want.quants.data(), kColumns), 0);
      ASSERT_EQ(std::memcmp(activations.scales_row(r), want.scales.data(), want.scales.size() * sizeof(float)), 0);
      ASSERT_EQ(std::memcmp(activations.sums_row(r), want.sums.data(), want.sums.size() * sizeof(std::int16_t)), 0);
    }
  }
}

TEST(Activations, ABf16RowIsFilledUpWithZeros) {
  ThreadPool pool(1);
  Activations activations(2, 64);
  const std::vector<float> x(128, 1.0f);
  activations.assign({kernels_for(Isa::kScalar), pool}, ActivationKind::kBF16, x.data(), 2, 64, 64);
  activations.assign({kernels_for(Isa::kScalar), pool}, ActivationKind::kBF16, x.data(), 2, 33, 33);
  for (std::size_t i = 33; i < 64; ++i) EXPECT_EQ(activations.bf16_row(1)[i].bits, 0);
  EXPECT_EQ(activations.bf16_row(1)[32].bits, 0x3F80);
}

}  // namespace
}  // namespace quench
