#pragma once

#include <cstdint>

namespace quench {

/// Index into the model's vocabulary. Here, below everything, because the model, the sampler and the tokenizer all speak of it.
using Token = std::uint32_t;

}  // namespace quench
