#include "engine/context_plan.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace quench {
namespace {

/// One kv head of 64 channels, one layer: 256 bytes a position, 16 KiB a page.
KvLayout layout(std::size_t window = 0) {
  KvLayout result;
  result.n_kv_heads = 1;
  result.head_dim = 64;
  result.groups = {{.window = window, .n_layers = 1}};
  result.layers = {{.group = 0, .slot = 0}};
  return result;
}

constexpr std::uint64_t kPage = 64 * 256;

TEST(ContextPlan, IsWhatTheFileWasTrainedForWhenItFits) {
  const auto plan = plan_context(layout(), 4096, std::uint64_t{1} << 30, 512, std::nullopt);
  EXPECT_EQ(plan.context, 4096u);
  EXPECT_FALSE(plan.limited_by_memory());
  EXPECT_EQ(plan.cache_bytes, 64 * kPage);
  EXPECT_EQ(plan.budget_bytes, std::uint64_t{1} << 29);
}

TEST(ContextPlan, IsBoundedByHalfOfTheMemory) {
  const auto plan = plan_context(layout(), 4096, 2 * (10 * kPage + 5), 512, std::nullopt);
  EXPECT_EQ(plan.context, 640u);
  EXPECT_TRUE(plan.limited_by_memory());
  EXPECT_EQ(plan.fits, 640u);
}

TEST(ContextPlan, ARequestIsTakenOrRefusedWithBothNumbers) {
  EXPECT_EQ(plan_context(layout(), 4096, std::uint64_t{1} << 30, 512, 100).context, 100u);
  const auto complaint = [](std::uint64_t available, std::size_t requested, ErrorKind kind) -> std::string {
    try {
      static_cast<void>(plan_context(layout(), 4096, available, 512, requested));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    return {};
  };
  EXPECT_NE(complaint(1u << 30, 5000, ErrorKind::kBadRequest).find("5000 positions are asked for, but the model was trained for 4096"),
            std::string::npos);
  EXPECT_NE(complaint(1u << 30, 0, ErrorKind::kBadRequest), "");
  EXPECT_NE(complaint(2 * kPage, 65, ErrorKind::kOutOfMemory).find("enough for 64 positions"), std::string::npos);
}

TEST(ContextPlan, WithoutRoomForOnePageThereIsNoContext) {
  EXPECT_THROW(static_cast<void>(plan_context(layout(), 4096, kPage, 512, std::nullopt)), Error);
}

TEST(ContextPlan, AWindowNeedsLessThanItsContext) {
  const std::uint64_t available = 2 * 20 * kPage;
  EXPECT_EQ(plan_context(layout(), 100000, available, 64, std::nullopt).context, 1280u);
  EXPECT_EQ(plan_context(layout(128), 100000, available, 64, std::nullopt).context, 100000u);
}

TEST(ContextPlan, ABudgetMayBeGivenUpToWhatIsFree) {
  const auto plan = plan_context(layout(), 4096, std::uint64_t{1} << 30, 512, std::nullopt, 5 * kPage);
  EXPECT_EQ(plan.budget_bytes, 5 * kPage);
  EXPECT_EQ(plan.context, 320u);
  EXPECT_THROW(static_cast<void>(plan_context(layout(), 4096, 4 * kPage, 512, std::nullopt, 5 * kPage)), Error);
}

}  // namespace
}  // namespace quench
