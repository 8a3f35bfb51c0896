#pragma once

#include <memory>

#include "cli/model_options.h"
#include "engine/batch_engine.h"
#include "engine/context_plan.h"
#include "engine/step_backend.h"
#include "model/forward.h"
#include "model/kv_cache.h"

namespace quench::cli {

/// An engine for one user of a loaded model. Nobody waits for a first token, so prompts are computed in steps as large as the chunk.
class LocalEngine {
 public:
  /// `loaded` outlives this. Throws as plan_context does.
  /// parallel  answers side by side at most
  LocalEngine(const LoadedModel& loaded, const ModelOptions& options, std::size_t parallel = 1);

  [[nodiscard]] BatchEngine& engine() noexcept { return engine_; }
  [[nodiscard]] const ContextPlan& plan() const noexcept { return plan_; }

 private:
  Forward forward_;
  ContextPlan plan_;
  KvCache cache_;
  ForwardBackend backend_;
  BatchEngine engine_;
};

}  // namespace quench::cli
