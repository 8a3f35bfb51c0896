#pragma once

#include <cstdint>

namespace quench {

/// Bytes that can still be allocated without swapping: MemAvailable, bounded by what the cgroup leaves.
[[nodiscard]] std::uint64_t available_memory_bytes();
/// Resident set of this process now, and its peak so far.
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t peak_resident_bytes();

}  // namespace quench
