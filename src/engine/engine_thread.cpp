#include "engine/engine_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"

namespace quench {

/// Work of between_steps, on the stack of who waits for it.
struct EngineThread::Work {
  const std::function<void(BatchEngine&)>& action;
  std::exception_ptr error{};
  bool finished = false;  ///< under the mutex
};

void EngineThread::finish(Work& work) noexcept {
  try {
    work.action(engine_);
  } catch (...) {
    work.error = std::current_exception();
  }
  // This thread holds nothing of the error any more: who waits throws it, and frees it.
  {
    const std::lock_guard lock(mutex_);
    work.finished = true;
  }
  finished_.notify_all();
}

EngineThread::EngineThread(BatchEngine& engine) : engine_(engine), thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

RequestId EngineThread::submit(EngineRequest request) {
  engine_.check(request);
  request.submitted = engine_.now();
  RequestId id = 0;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t ahead = requested_answers_ + waiting_answers_;
    if (request.samplers.size() > engine_.max_waiting() - std::min(engine_.max_waiting(), ahead)) {
      throw_out_of_memory(fmt::format("the queue is full: {} answers wait, and {} may", ahead, engine_.max_waiting()));
    }
    id = engine_.new_id();
    request.id = id;
    const std::size_t n_answers = request.samplers.size();
    requests_.push_back(std::move(request));
    requested_answers_ += n_answers;
  }
  wake_.notify_one();
  return id;
}

void EngineThread::cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
  }
  wake_.notify_one();
}

void EngineThread::between_steps(const std::function<void(BatchEngine&)>& work) {
  Work item{.action = work};
  {
    std::unique_lock lock(mutex_);
    work_.push_back(&item);
    wake_.notify_one();
    finished_.wait(lock, [&item] { return item.finished; });
  }
  if (item.error) std::rethrow_exception(item.error);
}

BatchEngineStats EngineThread::stats() {
  BatchEngineStats stats;
  between_steps([&stats](BatchEngine& engine) { stats = engine.stats(); });
  return stats;
}

bool EngineThread::take_inbox(std::vector<EngineRequest>& requests, std::vector<RequestId>& cancelled, std::vector<Work*>& work) {
  requests.clear();
  cancelled.clear();
  work.clear();
  std::unique_lock lock(mutex_);
  engine_idle_ = engine_.idle();
  waiting_answers_ = engine_.waiting();
  wake_.wait(lock, [this] { return stopping_ || !engine_idle_ || !requests_.empty() || !cancelled_.empty() || !work_.empty(); });
  requests.swap(requests_);
  cancelled.swap(cancelled_);
  work.swap(work_);
  waiting_answers_ += std::exchange(requested_answers_, 0);
  return !stopping_;
}

void EngineThread::run() noexcept {
  std::vector<EngineRequest> requests;
  std::vector<RequestId> cancelled;
  std::vector<Work*> work;
  const auto submit_all = [&] {
    for (EngineRequest& request : requests) {
      try {
        engine_.submit(std::move(request));
      } catch (...) {
        // No memory for its bookkeeping. The listener is told by its destruction.
      }
    }
  };
  while (take_inbox(requests, cancelled, work)) {
    submit_all();
    for (const RequestId id : cancelled) engine_.cancel(id);
    for (Work* item : work) finish(*item);
    try {
      engine_.step();
    } catch (...) {
      engine_.fail_all(std::current_exception());
    }
  }
  submit_all();
  for (Work* item : work) finish(*item);
  engine_.cancel_all();
}

}  // namespace quench
