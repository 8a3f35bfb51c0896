#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quench {

/// Where one thread's time goes, by named region. Regions nest; time counts for the innermost one alone, and for "other" outside all of
/// them, so that the times add up to the time between start and stop. Regions outside that are not counted.
class Profile {
 public:
  struct Entry {
    std::string name;
    double seconds = 0;
    std::uint64_t calls = 0;
  };

  void start();
  void stop();
  /// Enters a region: its name is `name` and, where there is one, a space and `detail`. A null name is that of the region around it,
  /// without the detail. `name` is a literal.
  void enter(const char* name, std::string_view detail);
  void leave();

  /// In the order of their first calls; "other" first.
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Region {
    const char* name;
    std::string detail;
    Clock::duration time{};
    std::uint64_t calls = 0;
  };

  void charge();
  [[nodiscard]] std::size_t region(const char* name, std::string_view detail);

  bool running_ = false;
  Clock::time_point since_{};
  std::vector<Region> regions_{{.name = "other", .detail = {}}};
  std::vector<std::size_t> stack_{0};
};

/// A region from here to the end of the scope; nothing at all without a profile.
class ProfileScope {
 public:
  ProfileScope(Profile* profile, const char* name, std::string_view detail = {}) : profile_(profile) {
    if (profile_ != nullptr) profile_->enter(name, detail);
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;
  ~ProfileScope() {
    if (profile_ != nullptr) profile_->leave();
  }

 private:
  Profile* profile_;
};

}  // namespace quench
