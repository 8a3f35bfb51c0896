#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gguf/reader.h"
#include "model/config.h"
#include "model/weights.h"

namespace quench {

/// Where one tensor of the file goes. Exactly one of the targets is set.
struct TensorTarget {
  const gguf::TensorInfo* tensor;
  PackedMatrix* matrix = nullptr;  ///< packed
  float* vector = nullptr;         ///< decoded to f32
};

/// Every tensor that the model needs, checked, in layer order, with memory for it in `weights`, save that matrices are not bound yet.
/// Completes `config`.
[[nodiscard]] std::vector<TensorTarget> plan_tensors(const gguf::Reader& reader, ModelConfig& config, Weights& weights);

}  // namespace quench
