#include "engine/batch_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace quench {

struct BatchEngine::Submission {
  RequestId id = 0;
  EngineRequest request;  ///< without its samplers
  double submitted = 0.0;
  bool cancelled = false;

  [[nodiscard]] double deadline() const noexcept { return submitted + *request.deadline_seconds; }
};

/// One answer in the making. `tokens` runs ahead of the cache: what the cache lacks is the rest of the prompt, or the token drawn last.
struct BatchEngine::Answer {
  Answer(std::shared_ptr<Submission> of, std::size_t number, Sampler own_sampler, KvCache& cache)
      : submission(std::move(of)), index(number), kv(cache), sampler(std::move(own_sampler)) {}

  std::shared_ptr<Submission> submission;
  std::size_t index;
  std::vector<Token> tokens;  ///< prompt and committed ones; empty before the first admission
  KvSequence kv;
  Sampler sampler;
  AnswerReport report;
  std::vector<std::unique_ptr<Answer>> followers;  ///< of the same prompt; they start from this one's pages once it is computed
  bool ended = false;
  bool drawn = false;                   ///< in this step
  std::unique_ptr<Drafter> drafter;     ///< null: no speculation
  std::vector<Token> draft;             ///< of this step
  std::vector<Token> rows;              ///< of this step: the last token and the draft
  bool off_draft = false;               ///< a drawn token was not the guessed one: later rows are void
  std::size_t accepted = 0;             ///< guesses of this step that came true
  std::optional<DraftSequence> second;  ///< of the draft model; none: not asked yet
  bool of_model = false;                ///< this step's draft is the draft model's
  std::size_t pos0 = 0;                 ///< of this step's first row
  std::size_t prompt_told = 1;          ///< tokens of the prompt that the listener needs not be told of: the first, and those that it was

  [[nodiscard]] std::size_t left() const noexcept { return tokens.size() - kv.length(); }
  [[nodiscard]] bool decodes() const noexcept { return report.generated_tokens > 0 && left() == 1; }
  [[nodiscard]] bool tells_prompt() const noexcept {
    return submission->request.prompt_logits && report.generated_tokens == 0 && prompt_told < submission->request.prompt.size();
  }
  [[nodiscard]] std::span<const Token> cached_tokens() const noexcept { return std::span(tokens).first(kv.length()); }
  /// Place in line.
  [[nodiscard]] auto place() const noexcept { return std::tuple(-std::int64_t{submission->request.priority}, submission->id, index); }

  void finish(AnswerEnd how) noexcept {
    ended = true;
    report.end = how;
  }
  void fail(std::exception_ptr error) noexcept {
    finish(AnswerEnd::kFailed);
    report.error = std::move(error);
  }
};

namespace {

/// Committed tokens after which a draft model that is not worth its time is tried again.
constexpr std::size_t kQuietTokens = 48;

void put_in_line(auto& answers, auto answer) {
  const auto place = std::ranges::upper_bound(answers, answer->place(), {}, [](const auto& other) { return other->place(); });
  answers.insert(place, std::move(answer));
}

}  // namespace

std::string_view answer_end_name(AnswerEnd end) noexcept {
  switch (end) {
    case AnswerEnd::kStopId: return "stop id";
    case AnswerEnd::kListener: return "listener";
    case AnswerEnd::kLength: return "length";
    case AnswerEnd::kCancelled: return "cancelled";
    case AnswerEnd::kDeadline: return "deadline";
    case AnswerEnd::kFailed: return "failed";
  }
  return "?";
}

BatchEngine::BatchEngine(StepBackend& backend, KvCache& cache, const BatchEngineOptions& options)
    : backend_(backend),
      cache_(cache),
      options_(options),
      prefix_(cache),
      planner_([&] {
        auto planner = options.planner;
        planner.chunk = std::min(planner.chunk, backend.chunk());
        return planner;
      }()),
      successors_(backend.vocab_size()) {
  if (options.max_running == 0 || options.max_waiting == 0 || planner_.options().chunk == 0) {
    throw_bad_request("engine: room for 0 answers, or steps of 0 rows, compute nothing");
  }
  options_.max_running = std::min(options_.max_running, planner_.options().chunk);
}

BatchEngine::~BatchEngine() = default;

void BatchEngine::check(const EngineRequest& request) const {
  if (request.prompt.empty()) throw_bad_request("the prompt is empty: there is nothing to continue");
  if (request.samplers.empty() || request.max_new_tokens == 0) throw_bad_request("the request asks for no answer: 0 answers or 0 tokens");
  if (!request.listener) throw_bad_request("the request has no listener");
  const std::size_t n_vocab = backend_.vocab_size();
  for (const Token token : request.prompt) {
    if (token >= n_vocab) {
      throw_bad_request(fmt::format("token id {} in the prompt is outside the model's vocabulary of {}", token, n_vocab));
    }
  }
  const std::size_t context = cache_.context();
  if (request.prompt.size() > context || request.max_new_tokens > context - request.prompt.size()) {
    throw_bad_request(
        fmt::format("{} prompt tokens and {} new ones exceed the context of {}", request.prompt.size(), request.max_new_tokens, context));
  }
  const std::size_t positions = request.prompt.size() + request.max_new_tokens;
  const std::uint64_t bytes = cache_.layout().bytes_for(positions, planner_.options().chunk);
  if (bytes > cache_.budget_bytes()) {
    throw_bad_request(fmt::format("{} prompt tokens and {} new ones take {} MiB of KV cache, and the whole budget is {} MiB",
                                  request.prompt.size(), request.max_new_tokens, bytes >> 20, cache_.budget_bytes() >> 20));
  }
  if (request.samplers.size() > options_.max_running) {
    throw_bad_request(
        fmt::format("{} answers are asked for, and {} run side by side at most", request.samplers.size(), options_.max_running));
  }
}

RequestId BatchEngine::submit(EngineRequest request) {
  check(request);
  if (request.samplers.size() > options_.max_waiting - std::min(options_.max_waiting, waiting_.size())) {
    throw_out_of_memory(fmt::format("the queue is full: {} requests wait, and {} may", waiting_.size(), options_.max_waiting));
  }
  auto submission = std::make_shared<Submission>();
  submission->id = request.id != 0 ? request.id : new_id();
  submission->submitted = request.submitted.value_or(backend_.now());
  auto samplers = std::exchange(request.samplers, {});
  submission->request = std::move(request);
  std::unique_ptr<Answer> leader;
  for (std::size_t i = 0; i < samplers.size(); ++i) {
    auto answer = std::make_unique<Answer>(submission, i, std::move(samplers[i]), cache_);
    answer->report.submitted = submission->submitted;
    answer->report.prompt_tokens = submission->request.prompt.size();
    (leader ? leader->followers.emplace_back() : leader) = std::move(answer);
  }
  put_in_line(waiting_, std::move(leader));
  return submission->id;
}

void BatchEngine::cancel(RequestId id) noexcept {
  for (AnswerList* answers : {&waiting_, &running_}) {
    for (const auto& answer : *answers) {
      if (answer->submission->id == id) answer->submission->cancelled = true;
    }
  }
}

void BatchEngine::cancel_all() noexcept {
  for (AnswerList* answers : {&waiting_, &running_}) {
    for (const auto& answer : *answers) answer->finish(AnswerEnd::kCancelled);
    remove_ended(*answers);
  }
}

void BatchEngine::fail_all(const std::exception_ptr& error) noexcept {
  for (AnswerList* answers : {&waiting_, &joining_, &running_}) {
    for (const auto& answer : *answers) {
      if (answer) answer->fail(error);
    }
    std::erase(*answers, nullptr);
    remove_ended(*answers);
  }
}

bool BatchEngine::idle() const noexcept { return waiting_.empty() && running_.empty(); }

bool BatchEngine::step() {
  end_overdue();
  admit_waiting();
  do {
    plan();
  } while (!make_room());
  if (running_.empty()) return !waiting_.empty();
  run();
  settle();
  return true;
}

void BatchEngine::end_overdue() {
  const double now = backend_.now();
  for (AnswerList* answers : {&waiting_, &running_}) {
    for (const auto& answer : *answers) {
      const Submission& submission = *answer->submission;
      if (answer->ended) continue;
      if (submission.cancelled) {
        answer->finish(AnswerEnd::kCancelled);
      } else if (submission.request.deadline_seconds && now >= submission.deadline()) {
        answer->finish(AnswerEnd::kDeadline);
      }
    }
    remove_ended(*answers);
  }
}

/// Who waits for a neighbour's prompt lets others pass; who waits for pages does not, for they would take them.
void BatchEngine::admit_waiting() {
  for (std::size_t i = 0; i < waiting_.size();) {
    const std::size_t answers = running_.size() + 1 + waiting_[i]->followers.size();
    if (!running_.empty() && answers > options_.max_running) return;
    const Admission admission = admit(*waiting_[i]);
    if (admission == Admission::kNoRoom) return;
    if (admission == Admission::kSoonComputed) {
      ++i;
      continue;
    }
    auto answer = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    put_in_line(running_, std::move(answer));
  }
}

BatchEngine::Admission BatchEngine::admit(Answer& answer) {
  const EngineRequest& request = answer.submission->request;
  const std::vector<Token>& tokens = answer.tokens.empty() ? request.prompt : answer.tokens;
  // Logits are not cached: what they are wanted of is computed in any case, and so is the last token.
  const bool tells_prompt = answer.tells_prompt();
  const auto prefix = std::span(tokens).first(tells_prompt ? answer.prompt_told - 1 : tokens.size() - 1);
  if (!tells_prompt && soon_computed(answer, prefix_.match_length(prefix, request.adapter))) return Admission::kSoonComputed;
  KvSequence kv = prefix_.find(prefix, request.adapter);
  const auto needed = [&] { return kv.bytes_needed(tokens.size() - kv.length(), planner_.options().chunk) + promised_bytes(); };
  while (!prefix_.make_room(needed())) {
    if (running_.empty()) {
      prefix_.forget_all();
      break;
    }
    if (running_.back()->submission->request.priority >= request.priority) return Admission::kNoRoom;
    preempt(running_.size() - 1);
  }
  answer.kv = std::move(kv);
  answer.kv.reserve(request.prompt.size() + request.max_new_tokens);
  if (!answer.tokens.empty()) return Admission::kAdmitted;
  answer.report.admitted = backend_.now();
  answer.report.cached_tokens = answer.kv.length();
  prompt_tokens_ += request.prompt.size();
  cached_tokens_ += answer.kv.length();
  const auto start = [&](Answer& one) {
    const std::size_t most_tokens = request.prompt.size() + request.max_new_tokens;
    one.tokens.reserve(most_tokens);
    one.tokens = request.prompt;
    one.sampler.reserve_history(most_tokens);
    one.sampler.set_history(request.prompt);
    if (options_.most_draft == 0 || !request.speculate) return;
    one.drafter = std::make_unique<Drafter>(successors_, request.references, draft_record_, most_tokens);
    one.drafter->read(request.prompt);
    one.draft.reserve(options_.most_draft);
    one.rows.reserve(options_.most_draft + 1);
  };
  start(answer);
  for (const auto& follower : answer.followers) {
    start(*follower);
    follower->report.admitted = answer.report.admitted;
    follower->report.cached_tokens = answer.report.cached_tokens;
  }
  return Admission::kAdmitted;
}

/// Whether another answer is about to compute more of this one's prompt than the prefix cache has: waiting for it is cheaper than doing it
/// again.
bool BatchEngine::soon_computed(const Answer& answer, std::size_t found) const {
  const EngineRequest& request = answer.submission->request;
  const std::vector<Token>& tokens = answer.tokens.empty() ? request.prompt : answer.tokens;
  return std::ranges::any_of(running_, [&](const auto& other) {
    if (other->decodes() || other->submission->request.adapter != request.adapter) return false;
    if (other->submission->request.priority < request.priority) return false;
    const auto common = static_cast<std::size_t>(std::ranges::mismatch(other->tokens, tokens).in1 - other->tokens.begin());
    const std::size_t whole_pages = std::min(common, tokens.size() - 1) / kPagePositions * kPagePositions;
    return whole_pages > std::max(found, other->kv.length());
  });
}

/// What the running answers' prompts will still take, and a page for each to go on with.
std::uint64_t BatchEngine::promised_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& answer : running_) {
    bytes += answer->kv.bytes_needed(answer->left(), planner_.options().chunk);
    for (std::size_t group = 0; group < cache_.layout().groups.size(); ++group) bytes += cache_.layout().page_bytes(group);
  }
  return bytes;
}

/// What a constraint forces, as far as it can be believed: it saves time and decides nothing.
void BatchEngine::guess_forced(Answer& answer, std::size_t most) const {
  try {
    answer.sampler.forced(most, answer.draft);
  } catch (...) {
    answer.draft.clear();
  }
  const auto unknown = std::ranges::find_if(answer.draft, [this](Token token) { return token >= vocab_size(); });
  answer.draft.erase(unknown, answer.draft.end());
}

/// Guesses as many tokens for each answer as are worth their time in this step.
void BatchEngine::plan_drafts() {
  StepShape shape;
  double answers = 0.0;
  for (const auto& answer : running_) {
    answer->draft.clear();
    if (!answer->decodes()) continue;
    shape += span_shape(answer->kv.length(), 1);
    answers += 1.0;
  }
  for (const auto& answer : running_) {
    if (!answer->decodes() || !answer->drafter || shape.rows >= planner_.options().chunk) continue;
    const std::size_t most = std::min(most_draft(*answer), planner_.options().chunk - shape.rows);
    if (most == 0) continue;
    const std::size_t length = answer->kv.length();
    guess_forced(*answer, most);
    std::size_t worthwhile = 0;
    if (!answer->draft.empty()) {
      worthwhile = worthwhile_guesses(1.0, 0.0, times_, shape, answers, length, std::min(most, answer->draft.size()));
      answer->draft.resize(worthwhile);
    } else {
      const Draft draft = answer->drafter->propose(most);
      worthwhile = worthwhile_draft(draft, answer->drafter->record(), times_, shape, answers, length);
      answer->draft.assign(draft.tokens.begin(), draft.tokens.begin() + static_cast<std::ptrdiff_t>(worthwhile));
    }
    shape += span_shape(length + 1, worthwhile);
  }
  if (options_.draft != nullptr) plan_model_drafts(shape, answers);
}

void BatchEngine::plan_model_drafts(StepShape shape, double answers) {
  wishes_.clear();
  for (const auto& answer : running_) {
    answer->of_model = false;
    if (!answer->decodes() || !answer->drafter || !answer->draft.empty() || shape.rows >= planner_.options().chunk) continue;
    if (!answer->second) answer->second.emplace(options_.draft->new_sequence());
    const std::size_t most = std::min(most_draft(*answer), planner_.options().chunk - shape.rows);
    std::size_t wanted = worthwhile_guesses(answer->second->hits.value(), options_.draft->guess_seconds(answers), times_, shape, answers,
                                            answer->kv.length(), most);
    // One that has gone quiet is asked now and then, or it would never be heard again.
    if (wanted == 0 && most > 0 && answer->second->since_guess >= kQuietTokens) wanted = 1;
    if (wanted == 0) continue;
    answer->of_model = true;
    wishes_.push_back({.sequence = &*answer->second, .tokens = answer->tokens, .most = wanted, .guesses = &answer->draft});
    shape += span_shape(answer->kv.length() + 1, wanted);
  }
  if (wishes_.empty()) return;
  try {
    options_.draft->propose(wishes_);
  } catch (const std::exception& error) {
    log_warning(fmt::format("the draft model failed, and guesses no more: {}", error.what()));
    options_.draft = nullptr;
    for (const auto& answer : running_) answer->draft.clear();
  }
}

void BatchEngine::learn_from_draft(Answer& answer) {
  if (!answer.second) return;
  DraftSequence& second = *answer.second;
  if (!answer.of_model || answer.draft.empty()) {
    second.since_guess += 1;
    return;
  }
  second.since_guess = 0;
  for (std::size_t i = 0; i < answer.draft.size() && i <= answer.accepted; ++i) second.hits.learn(i < answer.accepted);
}

/// What the answer may still say after the next token; and rows that it could take back: no page may fall behind a window for them.
std::size_t BatchEngine::most_draft(const Answer& answer) const noexcept {
  const std::size_t more = answer.submission->request.max_new_tokens - answer.report.generated_tokens - 1;
  std::size_t most = std::min(options_.most_draft, more);
  const std::size_t length = answer.kv.length() + 1;
  for (const KvGroup& group : cache_.layout().groups) {
    while (most > 0 && first_visible_page(group.window, length + most) > first_visible_page(group.window, length)) --most;
  }
  return most;
}

void BatchEngine::plan() {
  plan_drafts();
  planned_.clear();
  for (const auto& answer : running_) {
    const bool decodes = answer->decodes();
    planned_.push_back({.length = answer->kv.length(),
                        .decode_rows = decodes ? 1 + answer->draft.size() : 0,
                        .prompt_left = decodes ? 0 : answer->left(),
                        .priority = answer->submission->request.priority});
  }
  rows_ = planner_.plan(planned_, times_);
}

/// Pages for the planned rows. False when an answer had to give its pages up: the plan is void then.
bool BatchEngine::make_room() {
  std::uint64_t needed = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) needed += running_[i]->kv.bytes_needed(rows_[i], std::max<std::size_t>(rows_[i], 1));
  if (prefix_.make_room(needed)) return true;
  if (running_.size() > 1) {
    preempt(running_.size() - 1);
    return false;
  }
  // Alone, and what it shares with the prefix cache is counted twice.
  prefix_.forget_all();
  return true;
}

void BatchEngine::preempt(std::size_t index) {
  auto answer = std::move(running_[index]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  answer->kv.truncate(0);
  answer->second.reset();
  answer->report.preemptions += 1;
  preemptions_ += 1;
  put_in_line(waiting_, std::move(answer));
}

void BatchEngine::run() {
  step_.clear();
  step_answers_.clear();
  StepShape shape;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (rows_[i] == 0) continue;
    Answer& answer = *running_[i];
    answer.drawn = false;
    answer.off_draft = false;
    answer.accepted = 0;
    answer.pos0 = answer.kv.length();
    std::span<const Token> tokens;
    Wanted wanted = Wanted::kNone;
    if (answer.decodes()) {
      // The chunk may have had no room for all of it.
      answer.draft.resize(rows_[i] - 1);
      answer.rows.assign(1, answer.tokens.back());
      answer.rows.insert(answer.rows.end(), answer.draft.begin(), answer.draft.end());
      tokens = answer.rows;
      wanted = Wanted::kAll;
    } else {
      tokens = std::span(answer.tokens).subspan(answer.kv.length(), rows_[i]);
      if (answer.tells_prompt()) {
        wanted = Wanted::kAll;
      } else if (rows_[i] == answer.left()) {
        wanted = Wanted::kLast;
      }
    }
    step_.push_back({.sequence = &answer.kv, .tokens = tokens, .wanted = wanted});
    step_answers_.push_back(&answer);
    shape += span_shape(answer.kv.length(), rows_[i]);
  }
  const double start = backend_.now();
  try {
    backend_.step(step_, [this](std::size_t request, std::size_t row, std::span<const float> logits) {
      take_row(*step_answers_[request], row, logits);
    });
  } catch (...) {
    run_one_by_one();
  }
  times_.observe(shape, backend_.now() - start);
  steps_ += 1;
  computed_rows_ += shape.rows;
}

/// Something in the step failed, and nothing was appended: who fails alone is at fault. Answers that have drawn their token go on from
/// there: the next step computes this one's rows again.
void BatchEngine::run_one_by_one() {
  for (std::size_t i = 0; i < step_.size(); ++i) {
    Answer& answer = *step_answers_[i];
    if (answer.drawn) continue;
    try {
      backend_.step({&step_[i], 1}, [&](std::size_t, std::size_t row, std::span<const float> logits) { take_row(answer, row, logits); });
    } catch (...) {
      if (!answer.ended) answer.fail(std::current_exception());
    }
  }
}

void BatchEngine::take_row(Answer& answer, std::size_t row, std::span<const float> logits) noexcept {
  const std::size_t next = answer.pos0 + row + 1;
  if (next < answer.submission->request.prompt.size()) return tell_prompt(answer, next, logits);
  draw(answer, row, logits);
}

/// A row inside a prompt: what comes next is known.
void BatchEngine::tell_prompt(Answer& answer, std::size_t position, std::span<const float> logits) noexcept {
  // After a preemption rows are computed again.
  if (answer.ended || position != answer.prompt_told) return;
  const EngineRequest& request = answer.submission->request;
  try {
    request.listener->on_prompt_token(position, request.prompt[position], logits);
    answer.prompt_told += 1;
  } catch (...) {
    answer.fail(std::current_exception());
  }
}

/// The token that follows row `row` of an answer, unless the row rests on a guess that was wrong; and the first one of the answers that
/// follow it.
void BatchEngine::draw(Answer& answer, std::size_t row, std::span<const float> logits) noexcept {
  answer.drawn = true;
  for (const auto& follower : answer.followers) draw(*follower, row, logits);
  if (answer.ended || answer.off_draft) return;
  try {
    const Token token = answer.sampler.next(logits);
    answer.off_draft = row >= answer.draft.size() || answer.draft[row] != token;
    if (!answer.off_draft) {
      answer.report.accepted_tokens += 1;
      answer.accepted += 1;
    }
    if (commit(answer, token, logits) && answer.drafter) answer.drafter->commit(token);
  } catch (...) {
    answer.fail(std::current_exception());
  }
}

/// False when the token is no part of the answer.
bool BatchEngine::commit(Answer& answer, Token token, std::span<const float> logits) {
  const EngineRequest& request = answer.submission->request;
  if (answer.report.generated_tokens == 0) answer.report.first_token = backend_.now();
  if (std::ranges::find(request.stop_ids, token) != request.stop_ids.end()) {
    answer.report.stop_id = token;
    answer.finish(AnswerEnd::kStopId);
    return false;
  }
  answer.tokens.push_back(token);
  answer.report.generated_tokens += 1;
  if (!request.listener->on_token(answer.index, token, logits)) {
    answer.finish(AnswerEnd::kListener);
  } else if (answer.report.generated_tokens == request.max_new_tokens) {
    answer.finish(AnswerEnd::kLength);
  }
  return true;
}

void BatchEngine::settle() {
  for (Answer* answer : step_answers_) settle(*answer);
  for (auto& answer : joining_) put_in_line(running_, std::move(answer));
  joining_.clear();
  remove_ended(running_);
}

/// After its rows were computed.
void BatchEngine::settle(Answer& answer) {
  const EngineRequest& request = answer.submission->request;
  if (answer.ended && !answer.drawn) return;
  learn_from_draft(answer);
  if (!answer.draft.empty()) {
    answer.report.drafted_tokens += answer.draft.size();
    drafted_tokens_ += answer.draft.size();
    // Rows behind a wrong guess go. The token drawn last is in the cache only if it was guessed; a stop id is no part of the tokens.
    const bool last_is_computed = answer.ended && (!answer.off_draft || answer.report.end == AnswerEnd::kStopId);
    answer.kv.truncate(std::min(answer.kv.length(), answer.tokens.size() - (last_is_computed ? 0 : 1)));
    answer.draft.clear();
  }
  if (answer.report.generated_tokens == 0 || (answer.drawn && answer.report.generated_tokens == 1)) {
    try {
      request.listener->on_prefill(std::min(answer.kv.length(), request.prompt.size()), request.prompt.size());
    } catch (...) {
      answer.fail(std::current_exception());
    }
  }
  // Whole pages of a prompt can serve others at once; what is generated is kept at the end, so that decoding allocates nothing.
  if (!answer.drawn || answer.report.generated_tokens <= 1) prefix_.insert(answer.cached_tokens(), answer.kv, false, request.adapter);
  if (!answer.drawn) return;
  for (auto& follower : answer.followers) {
    if (!follower->ended) {
      follower->kv = answer.kv.fork();
      follower->kv.reserve(request.prompt.size() + request.max_new_tokens);
    }
    joining_.push_back(std::move(follower));
  }
  answer.followers.clear();
}

void BatchEngine::remove_ended(AnswerList& answers) {
  std::erase_if(answers, [&](auto& answer) {
    if (!answer->ended) return false;
    end(*answer);
    return true;
  });
}

void BatchEngine::end(Answer& answer) noexcept {
  for (const auto& follower : answer.followers) {
    if (!follower) continue;  // one that has joined
    follower->finish(answer.report.end);
    follower->report.error = answer.report.error;
    end(*follower);
  }
  const EngineRequest& request = answer.submission->request;
  if (answer.report.end != AnswerEnd::kFailed && answer.kv.length() > 0) {
    try {
      prefix_.insert(answer.cached_tokens(), answer.kv, true, request.adapter);
    } catch (...) {
      // No memory for the tree: the pages are given back instead.
    }
  }
  answer.kv.truncate(0);
  answer.second.reset();
  if (answer.drafter) draft_record_ = answer.drafter->record().loosened();
  accepted_tokens_ += answer.report.accepted_tokens;
  answer.report.ended = backend_.now();
  request.listener->on_end(answer.index, answer.report, answer.sampler);
}

BatchEngineStats BatchEngine::stats() const {
  return {.running = running_.size(),
          .waiting = waiting_.size(),
          .steps = steps_,
          .preemptions = preemptions_,
          .computed_rows = computed_rows_,
          .prompt_tokens = prompt_tokens_,
          .cached_tokens = cached_tokens_,
          .drafted_tokens = drafted_tokens_,
          .accepted_tokens = accepted_tokens_,
          .prefix = prefix_.stats(),
          .used_bytes = cache_.used_bytes(),
          .budget_bytes = cache_.budget_bytes()};
}

}  // namespace quench
