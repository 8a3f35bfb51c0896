#include "cli/local_engine.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "base/memory.h"
#include "cli/generation_options.h"
#include "cli/terminal.h"
#include "engine/draft_model.h"
#include "engine/file_hash.h"

namespace quench::cli {
namespace {

BatchEngineOptions options_of_one_user(std::size_t chunk, std::size_t parallel, DraftModel* draft) {
  BatchEngineOptions options;
  options.planner.chunk = chunk;
  options.planner.prefill_seconds = std::numeric_limits<double>::infinity();
  options.planner.lone_prefill_seconds = std::numeric_limits<double>::infinity();
  options.max_running = parallel;
  options.draft = draft;
  return options;
}

SavedCacheOwner cache_owner(LoadedModel& loaded, const ModelOptions& options) {
  const KvSettings settings{.window = static_cast<std::size_t>(options.window), .expert_top_p = options.expert_top_p};
  return {.model_hash = hash_model(loaded.reader.parts(), settings, loaded.pool),
          .layout = loaded.kv_layout(),
          .n_vocab = loaded.model.config().n_vocab};
}

/// Guesses are token ids: both models must mean the same by them.
void check_same_vocabulary(const LoadedModel& model, const ModelOptions& options, const LoadedModel& draft) {
  const auto ours = model.make_tokenizer(options);
  const auto theirs = draft.make_tokenizer(options);
  const std::size_t n_vocab = model.model.config().n_vocab;
  const auto refuse = [&](const std::string& why) {
    throw_bad_request(fmt::format("--draft {}: {}; a draft model has the vocabulary of the model that it guesses for",
                                  draft.reader.path().string(), why));
  };
  if (draft.model.config().n_vocab != n_vocab) refuse(fmt::format("{} tokens instead of {}", draft.model.config().n_vocab, n_vocab));
  for (std::size_t id = 0; id < n_vocab; ++id) {
    const auto token = static_cast<Token>(id);
    if (ours->token_text(token) != theirs->token_text(token)) {
      refuse(fmt::format("token {} is '{}' instead of '{}'", id, theirs->token_text(token), ours->token_text(token)));
    }
  }
}

/// Of the free memory, for the draft model's cache.
constexpr std::uint64_t kDraftShare = 8;

}  // namespace

/// The second model, on the first one's threads.
struct LocalEngine::Draft {
  Draft(const LoadedModel& loaded, const ModelOptions& options)
      : model(options.draft_model, options),
        forward(model.model, loaded.compute, {.chunk = static_cast<std::size_t>(options.chunk)}),
        cache(model.kv_layout(), {.budget_bytes = available_memory_bytes() / kDraftShare, .context = model.model.config().context_length}),
        backend(forward),
        guesses(backend, cache) {
    check_same_vocabulary(loaded, options, model);
  }

  LoadedModel model;
  Forward forward;
  KvCache cache;
  ForwardBackend backend;
  DraftModel guesses;
};

LocalEngine::LocalEngine(LoadedModel& loaded, const ModelOptions& options, std::size_t parallel)
    : draft_(options.draft_model.empty() ? nullptr : std::make_unique<Draft>(loaded, options)),
      forward_(loaded.model, loaded.compute, {.chunk = static_cast<std::size_t>(options.chunk)}),
      plan_(plan_for(loaded, options, forward_, draft_ ? draft_->cache.budget_bytes() : 0)),
      cache_(loaded.kv_layout(), {.budget_bytes = plan_.budget_bytes, .context = plan_.context}),
      backend_(forward_),
      engine_(backend_, cache_, options_of_one_user(forward_.chunk(), parallel, draft_ ? &draft_->guesses : nullptr)) {
  if (options.saved_cache.empty()) return;
  saved_.emplace(options.saved_cache, cache_owner(loaded, options), options.saved_cache_mib << 20);
  const std::size_t positions = saved_->restore(engine_.prefix_cache());
  if (stderr_is_terminal() && positions > 0) fmt::print(stderr, "{}: {} computed tokens\n", options.saved_cache, positions);
}

LocalEngine::~LocalEngine() = default;

void LocalEngine::save_cache() {
  if (saved_) saved_->save(engine_.prefix_cache());
}

}  // namespace quench::cli
