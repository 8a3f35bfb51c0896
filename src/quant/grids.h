#pragma once

#include <array>
#include <cstdint>

namespace quench {

// Published grid tables of the iq formats (ggml): entry i holds its 8 (iq3: 4) points as bytes, first element in the lowest byte.
// iq2 and iq3 points are positive magnitudes. iq1 points are signed and in eighths (-8, 0, 8).
extern const std::array<std::uint64_t, 256> kIq2XxsGrid;
extern const std::array<std::uint64_t, 512> kIq2XsGrid;
extern const std::array<std::uint64_t, 1024> kIq2SGrid;
extern const std::array<std::uint32_t, 256> kIq3XxsGrid;
extern const std::array<std::uint32_t, 512> kIq3SGrid;
extern const std::array<std::uint64_t, 2048> kIq1SGrid;

}  // namespace quench
