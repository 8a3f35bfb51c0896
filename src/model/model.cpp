#include "model/model.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/float_control.h"

namespace quench {
namespace {

/// llama3's divisors come from the file.
void check_frequency_divisors(const ModelConfig& config) {
  for (const RopeConfig& rope : config.ropes) {
    for (const float divisor : rope.frequency_divisors) {
      if (!std::isfinite(divisor) || divisor <= 0.0f) throw_bad_file("weights: rope_freqs.weight holds a value that is not above 0");
    }
  }
}

}  // namespace

Model::Model(ModelConfig config, Weights weights) : config_(std::move(config)), weights_(std::move(weights)) {}

Model Model::load(const gguf::Reader& reader, const LoadOptions& options, ThreadPool& pool) {
  const ScopedFloatControl float_control;
  ModelConfig config = read_config(reader.metadata());
  limit_window(config, options.window);
  limit_experts(config, options.expert_top_p);
  Weights weights = load_weights(reader, config, options.progress, pool);
  check_frequency_divisors(config);
  return {std::move(config), std::move(weights)};
}

}  // namespace quench
