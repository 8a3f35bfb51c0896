#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "cli/model_options.h"
#include "engine/batch_engine.h"
#include "engine/context_plan.h"
#include "engine/generator.h"
#include "engine/saved_cache.h"
#include "engine/step_backend.h"
#include "model/forward.h"
#include "model/kv_cache.h"

namespace quench::cli {

/// An engine for one user of a loaded model. Nobody waits for a first token, so prompts are computed in steps as large as the chunk. With
/// --kv-save it starts with what the file holds; with --draft a second model guesses.
class LocalEngine {
 public:
  /// `loaded` outlives this. Throws as plan_context and SavedCache do.
  /// parallel  answers side by side at most
  LocalEngine(LoadedModel& loaded, const ModelOptions& options, std::size_t parallel = 1);
  ~LocalEngine();

  [[nodiscard]] BatchEngine& engine() noexcept { return engine_; }
  [[nodiscard]] Generator& generator() noexcept { return generator_; }
  /// Adds what was computed to the file of --kv-save, if there is one. Throws as SavedCache::save does.
  void save_cache();
  [[nodiscard]] const ContextPlan& plan() const noexcept { return plan_; }

 private:
  struct Draft;

  std::unique_ptr<Draft> draft_;  ///< before the cache: its weights take of the memory that the plan finds free
  Forward forward_;
  ContextPlan plan_;
  KvCache cache_;
  ForwardBackend backend_;
  BatchEngine engine_;
  LocalGenerator generator_{engine_};
  std::optional<SavedCache> saved_;
};

}  // namespace quench::cli
