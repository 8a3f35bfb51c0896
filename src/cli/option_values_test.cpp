#include "cli/option_values.h"

#include <gtest/gtest.h>

#include <limits>

namespace quench::cli {
namespace {

bool takes(const CLI::Validator& validator, std::string text) { return validator(text).empty(); }

TEST(WholeNumber, TakesItsRangeAndNothingElse) {
  const CLI::Validator validator = whole_number(-1, 100);
  for (const char* good : {"-1", "0", "7", "100"}) EXPECT_TRUE(takes(validator, good)) << good;
  for (const char* bad : {"-2", "101", "", "-", "+1", "1.5", "1e2", "0x10", " 1", "1 ", "true", "99999999999999999999"}) {
    EXPECT_FALSE(takes(validator, bad)) << bad;
  }
}

TEST(WholeNumber, DoesNotSaturateAtTheEndsOfItsType) {
  const CLI::Validator all = whole_number(0, std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(takes(all, "18446744073709551615"));
  EXPECT_FALSE(takes(all, "18446744073709551616"));
  EXPECT_FALSE(takes(all, "-5"));
  EXPECT_FALSE(takes(whole_number(2, 10), "1"));
}

TEST(WholeNumber, TheMessageNamesTheTextAndTheRange) {
  std::string text = "99999999999999999999";
  EXPECT_EQ(whole_number(0, 8)(text), "'99999999999999999999' is no whole number from 0 to 8");
}

TEST(NumberBetween, RefusesNanAndWhatIsOutside) {
  const CLI::Validator validator = number_between(0, 1);
  for (const char* good : {"0", "1", "0.5", "1e-3"}) EXPECT_TRUE(takes(validator, good)) << good;
  for (const char* bad : {"nan", "-nan", "-1", "1.1", "inf", "", "a", "0.5x"}) EXPECT_FALSE(takes(validator, bad)) << bad;
}

}  // namespace
}  // namespace quench::cli
