#include "base/profile.h"

#include <cstring>

namespace quench {

/// The time since the last change goes to the region that it was spent in.
void Profile::charge() {
  const Clock::time_point now = Clock::now();
  if (running_) regions_[stack_.back()].time += now - since_;
  since_ = now;
}

void Profile::start() {
  charge();
  running_ = true;
}

void Profile::stop() {
  charge();
  running_ = false;
}

std::size_t Profile::region(const char* name, std::string_view detail) {
  // A dozen or two regions: looking at each is quicker than a hash of the name.
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if (std::strcmp(regions_[i].name, name) == 0 && regions_[i].detail == detail) return i;
  }
  regions_.push_back({.name = name, .detail = std::string(detail)});
  return regions_.size() - 1;
}

void Profile::enter(const char* name, std::string_view detail) {
  charge();
  const std::size_t index = region(name != nullptr ? name : regions_[stack_.back()].name, detail);
  if (running_) ++regions_[index].calls;
  stack_.push_back(index);
}

void Profile::leave() {
  charge();
  stack_.pop_back();
}

std::vector<Profile::Entry> Profile::entries() const {
  std::vector<Entry> entries;
  for (const Region& region : regions_) {
    const std::chrono::duration<double> seconds = region.time;
    entries.push_back({.name = region.detail.empty() ? region.name : region.name + (' ' + region.detail),
                       .seconds = seconds.count(),
                       .calls = region.calls});
  }
  return entries;
}

}  // namespace quench
