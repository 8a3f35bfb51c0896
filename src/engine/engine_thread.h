#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/batch_engine.h"

namespace quench {

/// A thread that runs a BatchEngine: requests come from any thread, at any time. Listeners are called on this thread, and hold up every
/// answer while they run.
class EngineThread {
 public:
  /// `engine` outlives this, and nobody else uses it.
  explicit EngineThread(BatchEngine& engine);
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;
  /// Answers that are not complete end with kCancelled.
  ~EngineThread();

  /// Throws as BatchEngine::submit does; the listener hears nothing then. Does not wait for a step.
  RequestId submit(EngineRequest request);
  /// Ends the request's answers with kCancelled after the step under way. Nothing when it has ended.
  void cancel(RequestId id);
  /// Runs `work` between two steps, waits for it, and throws what it throws. Not from a listener.
  void between_steps(const std::function<void(BatchEngine&)>& work);

  [[nodiscard]] BatchEngineStats stats();
  [[nodiscard]] std::size_t context() const noexcept { return engine_.context(); }
  [[nodiscard]] std::size_t vocab_size() const noexcept { return engine_.vocab_size(); }

 private:
  struct Work;

  void run() noexcept;
  void finish(Work& work) noexcept;
  /// Waits for something to do, and takes it. False at the end.
  bool take_inbox(std::vector<EngineRequest>& requests, std::vector<RequestId>& cancelled, std::vector<Work*>& work);

  BatchEngine& engine_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable finished_;  ///< some work is
  // Under the mutex:
  std::vector<EngineRequest> requests_;
  std::vector<RequestId> cancelled_;
  std::vector<Work*> work_;
  std::size_t requested_answers_ = 0;  ///< of requests_
  std::size_t waiting_answers_ = 0;    ///< in the engine's queue, after the last step
  bool engine_idle_ = true;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace quench
