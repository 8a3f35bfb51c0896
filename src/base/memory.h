#pragma once

#include <cstdint>

namespace quench {

/// Bytes that can still be allocated without swapping: MemAvailable, bounded by what the cgroup leaves.
[[nodiscard]] std::uint64_t available_memory_bytes();
/// Resident set of this process now, and its peak so far.
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t peak_resident_bytes();
/// Of the first processor; 0 when the system does not say.
[[nodiscard]] std::uint64_t last_level_cache_bytes();

}  // namespace quench
