#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/spec/exp.h"
#include "kernels/tables_under_test.h"

namespace quench {
namespace {

constexpr std::size_t kLongestRow = 700;

const KernelTable& scalar() { return kernels_for(Isa::kScalar); }

/// Values of many magnitudes, both zeros, subnormals and the largest finite ones.
std::vector<float> row_with_extremes(Xoshiro256& random, std::size_t n) {
  constexpr float kExtremes[] = {0.0f,     -0.0f, 1e-45f, -1e-40f,    1e-20f, -1e20f, 3.4e38f,
                                 -3.4e38f, 88.0f, -64.0f, -64.00001f, 1e-7f,  9.0f,   -9.1f};
  std::vector<float> row(n);
  for (float& value : row) {
    value = random.below(8) == 0 ? kExtremes[random.below(std::size(kExtremes))] : static_cast<float>(random.uniform() * 24.0 - 12.0);
  }
  return row;
}

std::vector<float> ordinary_row(Xoshiro256& random, std::size_t n) {
  std::vector<float> row(n);
  for (float& value : row) value = static_cast<float>(random.uniform() * 4.0 - 2.0);
  return row;
}

void expect_same_bits(const std::vector<float>& expected, const std::vector<float>& actual, const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(expected[i]), std::bit_cast<std::uint32_t>(actual[i]))
        << what << ", element " << i << " of " << expected.size() << ": " << expected[i] << " and " << actual[i];
  }
}

/// Calls run(table, row copy, second row) with the scalar table and every other one, over all lengths, and compares the rows it leaves.
template <typename Run>
void expect_every_table_agrees(const char* operation, const Run& run) {
  Xoshiro256 random(7);
  for (std::size_t n = 1; n <= kLongestRow; ++n) {
    const std::vector<float> x = n % 3 == 0 ? row_with_extremes(random, n) : ordinary_row(random, n);
    const std::vector<float> y = ordinary_row(random, n);
    std::vector<float> expected = x;
    run(scalar(), expected, y);
    for (const KernelTable* table : tables_under_test()) {
      std::vector<float> actual = x;
      run(*table, actual, y);
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(expected, actual, std::string(table->name) + " " + operation));
    }
  }
}

double ulps(double exact, float value) {
  const float magnitude = std::max(std::fabs(static_cast<float>(exact)), std::numeric_limits<float>::min());
  const double ulp = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::fabs(static_cast<double>(value) - exact) / ulp;
}

TEST(Rows, RmsNormIsTheSameOnEveryInstructionSet) {
  expect_every_table_agrees("rms_norm", [](const KernelTable& t, std::vector<float>& x, const std::vector<float>& y) {
    t.rms_norm(x.data(), y.data(), x.size(), 1e-6f, x.data());
  });
  expect_every_table_agrees("rms_norm without weights", [](const KernelTable& t, std::vector<float>& x, const std::vector<float>&) {
    t.rms_norm(x.data(), nullptr, x.size(), 1e-5f, x.data());
  });
}

TEST(Rows, ElementwiseOperationsAreTheSameOnEveryInstructionSet) {
  expect_every_table_agrees(
      "add", [](const KernelTable& t, std::vector<float>& x, const std::vector<float>& y) { t.add(x.data(), y.data(), x.size()); });
  expect_every_table_agrees(
      "scale", [](const KernelTable& t, std::vector<float>& x, const std::vector<float>& y) { t.scale(x.data(), y[0], x.size()); });
  expect_every_table_agrees("silu_mul", [](const KernelTable& t, std::vector<float>& x, const std::vector<float>& y) {
    t.silu_mul(x.data(), y.data(), x.size(), x.data());
  });
  expect_every_table_agrees("gelu_mul", [](const KernelTable& t, std::vector<float>& x, const std::vector<float>& y) {
    t.gelu_mul(x.data(), y.data(), x.size(), x.data());
  });
  expect_every_table_agrees(
      "soft_cap", [](const KernelTable& t, std::vector<float>& x, const std::vector<float>&) { t.soft_cap(x.data(), 30.0f, x.size()); });
  expect_every_table_agrees("sigmoid",
                            [](const KernelTable& t, std::vector<float>& x, const std::vector<float>&) { t.sigmoid(x.data(), x.size()); });
  expect_every_table_agrees("softmax",
                            [](const KernelTable& t, std::vector<float>& x, const std::vector<float>&) { t.softmax(x.data(), x.size()); });
  expect_every_table_agrees("add_scaled", [](const KernelTable& t, std::vector<float>& x, const std::vector<float>& y) {
    t.add_scaled(x.data(), 0.3f, y.data(), x.size());
  });
}

TEST(Rows, RopeIsTheSameOnEveryInstructionSet) {
  for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
    expect_every_table_agrees("rope", [style](const KernelTable& t, std::vector<float>& x, const std::vector<float>& y) {
      const std::size_t pairs = x.size() / 2;
      t.rope(x.data(), y.data(), y.data() + pairs, 2 * pairs, style);
    });
  }
}

TEST(Rows, RmsNormOfZerosIsZeroAndOfEqualValuesIsTheWeights) {
  std::vector<const KernelTable*> tables = tables_under_test();
  tables.push_back(&scalar());
  for (const KernelTable* table : tables) {
    const std::vector<float> zeros(100, 0.0f);
    const std::vector<float> threes(100, 3.0f);
    std::vector<float> weights(100);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i) - 50.0f;
    std::vector<float> out(100);
    table->rms_norm(zeros.data(), nullptr, 100, 1e-6f, out.data());
    EXPECT_EQ(out, zeros) << table->name;
    table->rms_norm(threes.data(), weights.data(), 100, 0.0f, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], weights[i], 1e-5f) << table->name;
  }
}

TEST(Rows, RowSumsAddSixteenStridedPartsAndFoldThemInPairs) {
  // 2^24 in part 0 and ones elsewhere: the order decides how many of the ones survive beside it.
  std::vector<float> x(48, 1.0f);
  x[0] = 4096.0f;
  float parts[16];
  for (std::size_t i = 0; i < 16; ++i) parts[i] = (x[i] * x[i] + 1.0f) + 1.0f;
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  const float inverse = 1.0f / std::sqrt(parts[0] / 48.0f);
  std::vector<float> out(48);
  scalar().rms_norm(x.data(), nullptr, 48, 0.0f, out.data());
  EXPECT_EQ(out[0], 4096.0f * inverse);
}

TEST(Rows, RopeAtPositionZeroIsTheIdentity) {
  Xoshiro256 random(3);
  const std::vector<float> head = ordinary_row(random, 64);
  const std::vector<float> cos(32, 1.0f);
  const std::vector<float> sin(32, 0.0f);
  for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
    std::vector<float> rotated = head;
    scalar().rope(rotated.data(), cos.data(), sin.data(), 64, style);
    EXPECT_EQ(rotated, head);
  }
}

TEST(Rows, RopeTurnsPairZeroByOneRadianAtPositionOne) {
  std::vector<float> cos(32, 1.0f);
  std::vector<float> sin(32, 0.0f);
  cos[0] = static_cast<float>(std::cos(1.0));
  sin[0] = static_cast<float>(std::sin(1.0));
  std::vector<float> half(64, 0.0f);
  half[0] = 1.0f;
  std::vector<float> interleaved = half;
  scalar().rope(half.data(), cos.data(), sin.data(), 64, RopeStyle::kHalf);
  EXPECT_EQ(half[0], cos[0]);
  EXPECT_EQ(half[32], sin[0]);
  scalar().rope(interleaved.data(), cos.data(), sin.data(), 64, RopeStyle::kInterleaved);
  EXPECT_EQ(interleaved[0], cos[0]);
  EXPECT_EQ(interleaved[1], sin[0]);
}

TEST(Rows, RopeLeavesChannelsBeyondTheRotatedOnesAlone) {
  for (const KernelTable* table : tables_under_test()) {
    Xoshiro256 random(4);
    std::vector<float> head = ordinary_row(random, 48);
    const std::vector<float> before = head;
    const std::vector<float> angles = ordinary_row(random, 20);
    table->rope(head.data(), angles.data(), angles.data() + 10, 20, RopeStyle::kHalf);
    EXPECT_TRUE(std::equal(head.begin() + 20, head.end(), before.begin() + 20)) << table->name;
    EXPECT_NE(head[19], before[19]) << table->name;
  }
}

TEST(Exp, IsWithinAnUlpOfTheTrueExponential) {
  double worst = 0.0;
  const auto check = [&](float x) { worst = std::max(worst, ulps(std::exp(static_cast<double>(x)), spec::exp(x))); };
  for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(88.375f); bits += 1999) check(std::bit_cast<float>(bits));
  for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(64.0f); bits += 1999) check(-std::bit_cast<float>(bits));
  for (int i = 0; i < 400'000; ++i) check(-64.0f + static_cast<float>(i) * (152.375f / 400'000.0f));
  EXPECT_LE(worst, 1.01);
}

TEST(Exp, IsPlusZeroBelowMinus64AndNeverOverflows) {
  EXPECT_GT(spec::exp(-64.0f), 0.0f);
  for (const float x : {std::nextafter(-64.0f, -65.0f), -100.0f, -1e30f, -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(spec::exp(x)), 0u) << x;
  }
  EXPECT_EQ(spec::exp(0.0f), 1.0f);
  EXPECT_EQ(spec::exp(-0.0f), 1.0f);
  EXPECT_EQ(spec::exp(3e38f), spec::exp(88.375f));
  EXPECT_TRUE(std::isfinite(spec::exp(3e38f)));
  EXPECT_TRUE(std::isnan(spec::exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Exp, NeverFallsAsItsArgumentGrows) {
  float previous = 0.0f;
  for (int i = 0; i < 2'000'000; ++i) {
    const float value = spec::exp(-65.0f + static_cast<float>(i) * (154.0f / 2'000'000.0f));
    ASSERT_GE(value, previous) << i;
    previous = value;
  }
}

TEST(Exp, TanhKeepsItsRelativeAccuracyDownToTheSmallestNumbersAndIsOdd) {
  double worst = 0.0;
  for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(40.0f); bits += 1499) {
    const float x = std::bit_cast<float>(bits);
    worst = std::max(worst, ulps(std::tanh(static_cast<double>(x)), spec::tanh(x)));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(spec::tanh(-x)), std::bit_cast<std::uint32_t>(spec::tanh(x)) | 0x80000000u) << x;
  }
  EXPECT_LE(worst, 3.0);
  EXPECT_EQ(spec::tanh(1e30f), 1.0f);
  EXPECT_EQ(spec::soft_cap(1e30f, 50.0f), 50.0f);
}

TEST(Exp, SigmoidAndGeluMatchTheirDefinitions) {
  for (int i = -4000; i <= 4000; ++i) {
    const float x = static_cast<float>(i) * 0.01f;
    const double d = static_cast<double>(x);
    EXPECT_NEAR(spec::sigmoid(x), 1.0 / (1.0 + std::exp(-d)), 1.5e-7);
    const double u = std::sqrt(2.0 / M_PI) * (d + 0.044715 * d * d * d);
    EXPECT_NEAR(spec::gelu(x), 0.5 * d * (1.0 + std::tanh(u)), 1e-6 + 4e-7 * std::fabs(d)) << x;
  }
}

TEST(Exp, IsTheSameOnEveryInstructionSetOverItsWholeRange) {
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < 0x7F800000u; bits += 20011) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(std::bit_cast<float>(bits | 0x80000000u));
  }
  const std::vector<float> ones(x.size(), 1.0f);
  std::vector<float> expected(x.size());
  std::vector<float> actual(x.size());
  for (const KernelTable* table : tables_under_test()) {
    scalar().silu_mul(x.data(), ones.data(), x.size(), expected.data());
    table->silu_mul(x.data(), ones.data(), x.size(), actual.data());
    ASSERT_NO_FATAL_FAILURE(expect_same_bits(expected, actual, table->name));
    expected = x;
    actual = x;
    scalar().soft_cap(expected.data(), 1.0f, x.size());
    table->soft_cap(actual.data(), 1.0f, x.size());
    ASSERT_NO_FATAL_FAILURE(expect_same_bits(expected, actual, table->name));
  }
}

TEST(Softmax, GivesSharesThatSumToOneAndKeepTheOrder) {
  std::vector<float> x = {0.0f, std::log(2.0f), std::log(5.0f)};
  scalar().softmax(x.data(), x.size());
  EXPECT_NEAR(x[0], 0.125f, 1e-6f);
  EXPECT_NEAR(x[1], 0.25f, 1e-6f);
  EXPECT_NEAR(x[2], 0.625f, 1e-6f);
}

}  // namespace
}  // namespace quench
