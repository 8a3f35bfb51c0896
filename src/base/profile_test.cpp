#include "base/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace quench {
namespace {

void spend() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

const Profile::Entry& entry(const std::vector<Profile::Entry>& entries, const std::string& name) {
  for (const Profile::Entry& found : entries) {
    if (found.name == name) return found;
  }
  throw std::logic_error("no region " + name);
}

TEST(Profile, TimeGoesToTheInnermostRegionAndAddsUp) {
  Profile profile;
  const auto start = std::chrono::steady_clock::now();
  profile.start();
  spend();
  {
    const ProfileScope outer(&profile, "outer");
    spend();
    const ProfileScope inner(&profile, "inner", "q8_0");
    spend();
  }
  profile.stop();
  const std::chrono::duration<double> around = std::chrono::steady_clock::now() - start;
  const auto entries = profile.entries();
  ASSERT_EQ(entries.size(), 3u);
  double sum = 0;
  for (const Profile::Entry& region : entries) {
    EXPECT_GE(region.seconds, 0.002) << region.name;  // a sleep is never shorter
    sum += region.seconds;
  }
  EXPECT_LE(sum, around.count());
  EXPECT_EQ(entry(entries, "inner q8_0").calls, 1u);
}

TEST(Profile, ARegionWithoutANameHasTheNameOfTheOneAroundIt) {
  Profile profile;
  profile.start();
  for (const char* role : {"qkv", "down"}) {
    const ProfileScope outer(&profile, role);
    const ProfileScope inner(&profile, nullptr, "q4_K");
    const ProfileScope innermost(&profile, nullptr, "q6_K");
  }
  profile.stop();
  EXPECT_EQ(entry(profile.entries(), "qkv q4_K").calls, 1u);
  EXPECT_EQ(entry(profile.entries(), "down q6_K").calls, 1u);
}

TEST(Profile, NothingIsCountedBeforeStartAndAfterStop) {
  Profile profile;
  const auto run = [&] {
    const ProfileScope scope(&profile, "region");
    spend();
  };
  run();
  profile.start();
  run();
  profile.stop();
  run();
  const auto entries = profile.entries();
  EXPECT_EQ(entry(entries, "region").calls, 1u);
}

TEST(Profile, AScopeWithoutAProfileDoesNothing) {
  const ProfileScope scope(nullptr, "region");
  Profile profile;
  EXPECT_EQ(profile.entries().size(), 1u);
}

}  // namespace
}  // namespace quench
