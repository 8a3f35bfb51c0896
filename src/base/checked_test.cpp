#include "base/checked.h"

#include <gtest/gtest.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"

namespace quench {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(Checked, OverflowGivesNothing) {
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_align(kMax, 32), std::nullopt);
  EXPECT_EQ(checked_align(33, 32), 64u);
  EXPECT_EQ((checked_cast<std::int32_t>(std::uint64_t{1} << 31)), std::nullopt);
  EXPECT_EQ((checked_cast<std::uint8_t>(-1)), std::nullopt);
  EXPECT_EQ((checked_cast<std::uint8_t>(255)), 255);
}

TEST(Xoshiro256, TheStreamOfASeedIsPinned) {
  Xoshiro256 one(1);
  Xoshiro256 same(1);
  Xoshiro256 other(2);
  const std::uint64_t first = one.next();
  EXPECT_EQ(first, 0xB3F2AF6D0FC710C5u);
  EXPECT_EQ(same.next(), first);
  EXPECT_NE(other.next(), first);
}

TEST(Xoshiro256, UniformStaysInRangeAndFillsIt) {
  Xoshiro256 random(7);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

TEST(Isa, ScalarIsAlwaysThereAndAForcedUnknownSetIsRefused) {
  EXPECT_EQ(available_isas().front(), Isa::kScalar);
  ASSERT_EQ(::setenv("QUENCH_ISA", "sse9", 1), 0);
  EXPECT_THROW((void)selected_isa(), Error);
  ASSERT_EQ(::setenv("QUENCH_ISA", "scalar", 1), 0);
  EXPECT_EQ(selected_isa(), Isa::kScalar);
  ASSERT_EQ(::unsetenv("QUENCH_ISA"), 0);
  EXPECT_EQ(selected_isa(), available_isas().back());
}

TEST(Isa, AForcedSetThatThisMachineLacksIsRefusedByName) {
  for (const Isa isa : {Isa::kNeon, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (isa_available(isa)) continue;
    ASSERT_EQ(::setenv("QUENCH_ISA", std::string(isa_name(isa)).c_str(), 1), 0);
    try {
      (void)selected_isa();
      ADD_FAILURE() << "accepted " << isa_name(isa);
    } catch (const Error& error) {
      EXPECT_EQ(exit_code(error.kind()), 2);
      EXPECT_NE(std::string(error.what()).find(isa_name(isa)), std::string::npos);
    }
  }
  ASSERT_EQ(::unsetenv("QUENCH_ISA"), 0);
}

}  // namespace
}  // namespace quench
