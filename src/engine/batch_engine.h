#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "engine/draft_model.h"
#include "engine/drafter.h"
#include "engine/engine_request.h"
#include "engine/prefix_cache.h"
#include "engine/step_backend.h"
#include "engine/step_planner.h"
#include "engine/step_times.h"
#include "model/kv_cache.h"
#include "model/kv_sequence.h"

namespace quench {

struct BatchEngineOptions {
  StepPlannerOptions planner{};
  std::size_t max_running = 64;    ///< answers computed side by side; at most the chunk
  std::size_t max_waiting = 4096;  ///< answers in the queue
  std::size_t most_draft = 16;     ///< tokens that an answer may guess in a step; 0: no speculation
  DraftModel* draft = nullptr;     ///< guesses where the text itself gives nothing; outlives the engine
};

struct BatchEngineStats {
  std::size_t running = 0;
  std::size_t waiting = 0;
  std::uint64_t steps = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t computed_rows = 0;
  std::uint64_t prompt_tokens = 0;  ///< of all prompts that were admitted
  std::uint64_t cached_tokens = 0;  ///< of those, found in the prefix cache
  std::uint64_t drafted_tokens = 0;
  std::uint64_t accepted_tokens = 0;
  PrefixCacheStats prefix;
  std::uint64_t used_bytes = 0;  ///< of the KV cache's budget, idle pages included
  std::uint64_t budget_bytes = 0;
};

/// Continuous batching: answers join and leave at any step, and each step is one pass over the weights for a token of every answer and the
/// parts of prompts that the planner gives it. An answer's tokens depend on its request alone: not on its neighbours, the prefix cache, or
/// being preempted.
///
/// When pages run short, idle ones of the prefix cache leave first; then the youngest answer of the lowest priority loses its pages and
/// waits, and is computed again later, with the same bits. The first in line always goes on.
///
/// Speculation: an answer's step may hold tokens that its drafter guesses, as many as are worth the time. The sampler draws from every row
/// in turn, and the first token that differs from the guess ends the rows: what is drawn is what would be drawn without guesses.
///
/// One thread at a time. In steady state (answers running, none coming or going, pages at hand) a step allocates nothing.
class BatchEngine {
 public:
  /// backend and cache outlive the engine. Throws Error(kBadRequest) for options that are 0.
  BatchEngine(StepBackend& backend, KvCache& cache, const BatchEngineOptions& options = {});
  ~BatchEngine();
  BatchEngine(const BatchEngine&) = delete;
  BatchEngine& operator=(const BatchEngine&) = delete;

  /// Throws Error(kBadRequest) when the request can never be computed: no prompt, no answers, ids outside the vocabulary, prompt and
  /// max_new_tokens beyond the context or the empty cache. Any thread may ask, at any time.
  void check(const EngineRequest& request) const;
  /// For EngineRequest::id: higher than those before. Any thread may ask, at any time.
  [[nodiscard]] RequestId new_id() noexcept { return last_id_.fetch_add(1) + 1; }
  /// Throws as `check` does, and Error(kOutOfMemory) when the queue is full. The listener hears nothing then.
  RequestId submit(EngineRequest request);
  /// Ends the request's answers with kCancelled, before the next step. Nothing when it has ended.
  void cancel(RequestId id) noexcept;
  void cancel_all() noexcept;
  /// Ends all answers with kFailed.
  void fail_all(const std::exception_ptr& error) noexcept;
  /// Computes one step; false when there is nothing to do.
  bool step();
  [[nodiscard]] bool idle() const noexcept;
  /// Answers in the queue, and how many may be there.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
  [[nodiscard]] std::size_t max_waiting() const noexcept { return options_.max_waiting; }
  /// Seconds on the engine's clock. Any thread may ask.
  [[nodiscard]] double now() const noexcept { return backend_.now(); }

  [[nodiscard]] BatchEngineStats stats() const;
  /// Positions that prompt and answer may take together.
  /// Most answers side by side, and most of one request.
  [[nodiscard]] std::size_t max_running() const noexcept { return options_.max_running; }
  [[nodiscard]] std::size_t context() const noexcept { return cache_.context(); }
  [[nodiscard]] std::size_t vocab_size() const noexcept { return backend_.vocab_size(); }
  [[nodiscard]] PrefixCache& prefix_cache() noexcept { return prefix_; }

 private:
  struct Submission;
  struct Answer;
  using AnswerList = std::vector<std::unique_ptr<Answer>>;

  void end_overdue();
  void admit_waiting();
  enum class Admission { kAdmitted, kSoonComputed, kNoRoom };
  [[nodiscard]] Admission admit(Answer& answer);
  [[nodiscard]] bool soon_computed(const Answer& answer, std::size_t found) const;
  [[nodiscard]] std::uint64_t promised_bytes() const;
  void plan();
  void plan_drafts();
  void guess_forced(Answer& answer, std::size_t most) const;
  /// Has the draft model guess for the answers that have no draft. `shape` is the step so far.
  void plan_model_drafts(StepShape shape, double answers);
  void learn_from_draft(Answer& answer);
  [[nodiscard]] std::size_t most_draft(const Answer& answer) const noexcept;
  [[nodiscard]] bool make_room();
  void preempt(std::size_t index);
  void run();
  void run_one_by_one();
  void take_row(Answer& answer, std::size_t row, std::span<const float> logits) noexcept;
  void tell_prompt(Answer& answer, std::size_t position, std::span<const float> logits) noexcept;
  void draw(Answer& answer, std::size_t row, std::span<const float> logits) noexcept;
  [[nodiscard]] bool commit(Answer& answer, Token token, std::span<const float> logits);
  void settle();
  void settle(Answer& answer);
  void end(Answer& answer) noexcept;
  void remove_ended(AnswerList& answers);

  StepBackend& backend_;
  KvCache& cache_;
  BatchEngineOptions options_;
  PrefixCache prefix_;
  StepPlanner planner_;
  StepTimes times_;
  SuccessorTable successors_;
  DraftRecord draft_record_;  ///< of the answer that ended last: what the next one starts from
  AnswerList waiting_;        ///< in line: by priority, then by age
  AnswerList running_;        ///< in line, too
  AnswerList joining_;        ///< made in this step, still to be put in line
  std::atomic<RequestId> last_id_{0};
  std::uint64_t steps_ = 0;
  std::uint64_t preemptions_ = 0;
  std::uint64_t computed_rows_ = 0;
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t cached_tokens_ = 0;
  std::uint64_t drafted_tokens_ = 0;
  std::uint64_t accepted_tokens_ = 0;
  std::vector<PlannedSequence> planned_;
  std::span<const std::size_t> rows_;  ///< of each running answer, in this step
  std::vector<SequenceTokens> step_;
  std::vector<Answer*> step_answers_;
  std::vector<DraftModel::Wish> wishes_;
};

}  // namespace quench
