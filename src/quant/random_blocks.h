#pragma once

#include <cstddef>

#include "base/random.h"
#include "quant/format.h"

namespace quench {

/// Writes `n_blocks` random blocks that a file may hold: uniform quants, finite scales, decoded values of mean about 0 and standard
/// deviation about `magnitude` (> 0; within a few per cent where the format's scales can express it). Much faster than encoding.
/// `out` holds n_blocks x block_bytes.
void random_blocks(Format format, Xoshiro256& random, std::size_t n_blocks, float magnitude, std::byte* out);

}  // namespace quench
