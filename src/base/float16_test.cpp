#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace quench {
namespace {

TEST(Float16, EveryHalfSurvivesTheRoundTripThroughF32) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const F16 half{static_cast<std::uint16_t>(bits)};
    const float wide = to_f32(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_f32(to_f16(wide))));
    } else {
      ASSERT_EQ(to_f16(wide), half) << bits;
    }
  }
}

TEST(Float16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(to_f16(1.0f + 0x1p-11f).bits, 0x3C00);      // half an ulp above 1: tie, down to even
  EXPECT_EQ(to_f16(1.0f + 3 * 0x1p-11f).bits, 0x3C02);  // tie, up to even
  EXPECT_EQ(to_f16(1.0f + 0x1.004p-11f).bits, 0x3C01);  // above the tie
  EXPECT_EQ(to_f16(0x1p-25f).bits, 0x0000);             // tie between 0 and the least subnormal
  EXPECT_EQ(to_f16(0x1.8p-25f).bits, 0x0001);
  EXPECT_EQ(to_f16(0x1.ff8p-15f).bits, 0x03FF);  // the largest subnormal
  EXPECT_EQ(to_f16(-0.0f).bits, 0x8000);
}

TEST(Float16, OverflowIsInfiniteUnlessSaturationIsAsked) {
  EXPECT_EQ(to_f16(65519.0f).bits, 0x7BFF);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(to_f16_saturate(65520.0f).bits, 0x7BFF);
  EXPECT_EQ(to_f16_saturate(-1e30f).bits, 0xFBFF);
  EXPECT_EQ(to_f16_saturate(std::numeric_limits<float>::infinity()).bits, 0x7BFF);
}

TEST(BFloat16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(to_bf16(1.0f + 0x1p-8f).bits, 0x3F80);
  EXPECT_EQ(to_bf16(1.0f + 3 * 0x1p-8f).bits, 0x3F82);
  EXPECT_EQ(to_f32(BF16{0x3F81}), 1.0f + 0x1p-7f);
}

}  // namespace
}  // namespace quench
