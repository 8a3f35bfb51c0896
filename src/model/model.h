#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "model/kv_cache.h"
#include "model/weights.h"

namespace quench {

struct LoadOptions {
  std::size_t window = 0;     ///< sliding window for every layer (a layer with a smaller one keeps it); 0 = as the file says
  float expert_top_p = 1.0f;  ///< below 1: a token keeps only the experts that together have this share of its weight; changes answers
  LoadProgress progress{};
};

/// A model in memory: config and packed weights, immutable, shared by any number of Forward objects.
class Model {
 public:
  /// Reads the config, checks every tensor's name and shape, then streams the weights once. Throws Error(kBadFile),
  /// Error(kUnsupported), Error(kOutOfMemory) or Error(kIo), each naming the key or tensor; of several, the first in layer order.
  [[nodiscard]] static Model load(const gguf::Reader& reader, const LoadOptions& options, ThreadPool& pool);

  [[nodiscard]] const ModelConfig& config() const noexcept { return config_; }
  [[nodiscard]] const Weights& weights() const noexcept { return weights_; }
  /// Throws Error(kUnsupported) when the heads do not fit the type.
  [[nodiscard]] KvLayout kv_layout(CacheType type = CacheType::kF16) const { return make_kv_layout(config_, type); }
  /// Of the packed weights.
  [[nodiscard]] std::uint64_t weight_bytes() const noexcept { return weights_.size_bytes(); }

 private:
  Model(ModelConfig config, Weights weights);

  ModelConfig config_;
  Weights weights_;
};

}  // namespace quench
