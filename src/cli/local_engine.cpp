#include "cli/local_engine.h"

#include <limits>

#include "cli/generation_options.h"

namespace quench::cli {
namespace {

BatchEngineOptions options_of_one_user(std::size_t chunk, std::size_t parallel) {
  BatchEngineOptions options;
  options.planner.chunk = chunk;
  options.planner.prefill_seconds = std::numeric_limits<double>::infinity();
  options.planner.lone_prefill_seconds = std::numeric_limits<double>::infinity();
  options.max_running = parallel;
  return options;
}

}  // namespace

LocalEngine::LocalEngine(const LoadedModel& loaded, const ModelOptions& options, std::size_t parallel)
    : forward_(loaded.model, loaded.compute, {.chunk = static_cast<std::size_t>(options.chunk)}),
      plan_(plan_for(loaded, options, forward_)),
      cache_(loaded.kv_layout(), {.budget_bytes = plan_.budget_bytes, .context = plan_.context}),
      backend_(forward_),
      engine_(backend_, cache_, options_of_one_user(forward_.chunk(), parallel)) {}

}  // namespace quench::cli
