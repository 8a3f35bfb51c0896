#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/thread_pool.h"
#include "engine/batch_engine.h"
#include "engine/dry_breakers.h"
#include "engine/engine_thread.h"
#include "engine/generation_options.h"
#include "engine/generator.h"
#include "engine/saved_cache.h"
#include "engine/step_backend.h"
#include "gguf/reader.h"
#include "model/forward.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "quench/quench.hpp"
#include "sample/settings.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

// What the handles of the library point at, and how its types become those of the layers below.

namespace quench::api {

struct Model::State {
  gguf::Reader reader;
  std::size_t window = 0;
  quench::Model model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<DryBreakers> dry_breakers;    ///< of the tokenizer
  std::unique_ptr<ChatTemplate> chat_template;  ///< null: the file calls for one that is not built in

  /// Throws quench::Error(kUnsupported) without one.
  [[nodiscard]] const ChatTemplate& needed_template() const;
};

struct Engine::State {
  State(const Model& of, const EngineOptions& options);

  Model model;
  std::size_t max_running;
  ThreadPool pool;
  Forward forward;
  KvCache cache;
  ForwardBackend backend;
  BatchEngine engine;
  std::optional<SavedCache> saved;
  EngineThread thread;  ///< the last: ends before what it runs on
  SharedGenerator generator{thread};
};

/// Errors of the layers below as those of the library.
[[nodiscard]] Error translated(const quench::Error& error);

/// Runs `action`; what it throws becomes an Error of the library. What the caller's own callbacks throw passes as it is.
template <typename Action>
auto translating(const Action& action) {
  try {
    return action();
  } catch (const quench::Error& error) {
    throw translated(error);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory, "out of memory");
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kIo, error.what());
  }
}

/// Throws Error(kBadRequest) for what is no number of threads.
void check_threads(int threads);
/// Throws Error(kBadRequest) for a role that is none.
[[nodiscard]] std::vector<ChatMessage> to_chat_messages(std::span<const Message> messages);
[[nodiscard]] Role to_role(quench::Role role) noexcept;
/// Throws Error(kBadRequest) for what is none.
[[nodiscard]] quench::Thinking to_thinking(Thinking thinking);
/// Throws Error(kBadRequest) for one that is not above 0.
void check_timeout(std::optional<double> seconds);
/// Throws Error(kBadRequest) for unknown steps, and for breakers that are empty or too long.
[[nodiscard]] SamplerSettings to_settings(const Sampling& sampling, const SamplerSettings& defaults, DryBreakers& breakers);
[[nodiscard]] Finish to_finish(FinishReason reason) noexcept;
[[nodiscard]] Answer to_answer(quench::GenerationResult result, const Tokenizer& tokenizer);
[[nodiscard]] TokenLogProbabilities to_log_probabilities(const quench::TokenLogProbabilities& found, const Tokenizer& tokenizer);

}  // namespace quench::api
