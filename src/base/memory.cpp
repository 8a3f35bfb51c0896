#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace quench {
namespace {

constexpr std::uint64_t kBytesPerKiB = 1024;

/// The value of `key` in a "Key:   123 kB" file, in bytes.
std::optional<std::uint64_t> kib_field(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  std::uint64_t value = 0;
  std::string rest;
  while (file >> name >> value) {
    if (name == key) return value * kBytesPerKiB;
    std::getline(file, rest);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// What the control group still allows, or nothing without a limit.
std::optional<std::uint64_t> cgroup_remaining_bytes() {
  auto limit = number_in("/sys/fs/cgroup/memory.max");
  auto used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit) {
    limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    used = number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes");
  }
  if (!limit || !used) return std::nullopt;
  return *limit > *used ? *limit - *used : 0;
}

}  // namespace

std::uint64_t available_memory_bytes() {
  const std::uint64_t system = kib_field("/proc/meminfo", "MemAvailable:").value_or(std::numeric_limits<std::uint64_t>::max());
  return std::min(system, cgroup_remaining_bytes().value_or(system));
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * 4096;
}

std::uint64_t peak_resident_bytes() {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * kBytesPerKiB;
  }
  return 0;
}

std::uint64_t last_level_cache_bytes() {
  // "32768K"; the highest index that is there is the outermost cache.
  std::uint64_t kib = 0;
  for (int index = 0; index < 8; ++index) {
    kib = std::max(kib, number_in(("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size").c_str()).value_or(0));
  }
  return kib * kBytesPerKiB;
}

}  // namespace quench
