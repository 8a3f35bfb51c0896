#include "model/forward.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/float_control.h"
#include "model/forward_scratch.h"
#include "model/request_check.h"
#include "model/step.h"

namespace quench {
namespace {

std::size_t rows_within(const ModelConfig& config, const ForwardOptions& options, std::size_t threads) {
  if (options.chunk == 0) throw_bad_request("forward: the chunk is 0 tokens, must be at least 1");
  const ScratchSizes sizes = scratch_sizes(config, threads);
  const std::uint64_t left = options.scratch_bytes > sizes.fixed_bytes ? options.scratch_bytes - sizes.fixed_bytes : 0;
  // A page of positions at least: below that, prefill would lose more than the memory is worth.
  const std::uint64_t rows = std::max<std::uint64_t>(left / sizes.row_bytes, kPagePositions);
  return static_cast<std::size_t>(std::min<std::uint64_t>(options.chunk, rows));
}

/// The first row of a request whose logits are asked for; its number of rows when there is none.
std::size_t first_wanted(const SequenceTokens& request) noexcept {
  if (request.wanted == Wanted::kAll) return 0;
  return request.tokens.size() - (request.wanted == Wanted::kLast ? 1 : 0);
}

}  // namespace

Forward::Forward(const Model& model, const Compute& compute, const ForwardOptions& options) : model_(model), compute_(compute) {
  const int threads = compute.pool.thread_count();
  const std::size_t rows = rows_within(model.config(), options, static_cast<std::size_t>(threads));
  scratch_ = std::make_unique<ForwardScratch>(model.config(), rows, threads);
}

Forward::Forward(Forward&&) noexcept = default;
Forward::~Forward() = default;

std::size_t Forward::chunk() const noexcept { return scratch_->max_rows; }

std::uint64_t Forward::scratch_bytes() const noexcept {
  return forward_scratch_bytes(model_.config(), chunk(), static_cast<std::size_t>(compute_.pool.thread_count()));
}

std::uint64_t forward_scratch_bytes(const ModelConfig& config, std::size_t chunk, std::size_t threads) noexcept {
  const ScratchSizes sizes = scratch_sizes(config, threads);
  return sizes.fixed_bytes + chunk * sizes.row_bytes;
}

void Forward::check_request(const SequenceTokens& request, std::size_t chunk_rows) const {
  check_tokens(model_.config(), request.tokens);
  request.sequence->check_room(request.tokens.size(), chunk_rows);
}

void Forward::check_start(const KvSequence& sequence, std::size_t pos0) {
  if (pos0 == sequence.length()) return;
  throw_bad_request("forward: the tokens start at position " + std::to_string(pos0) + ", but the sequence holds " +
                    std::to_string(sequence.length()));
}

void Forward::run_step(std::span<const SequenceTokens> requests, const StepSink& sink) {
  for (const SequenceTokens& request : requests) request.sequence->prepare(request.tokens.size());
  Step step(model_, compute_, *scratch_, requests);
  step.run();
  // The wanted rows follow one another: request by request, the last rows of each.
  std::size_t request = 0;
  std::size_t row = first_wanted(requests[0]);
  for (std::size_t begin = 0; begin < step.n_rows();) {
    const auto logits = step.logits(begin, std::min(scratch_->logits.size<Seq>(), step.n_rows() - begin));
    for (std::size_t i = 0; i < logits.size<Seq>(); ++i, ++row) {
      while (row == requests[request].tokens.size()) row = first_wanted(requests[++request]);
      const auto values = logits.row(i).elements();
      if (scratch_->logits_finite[i] == 0) throw_not_finite(requests[request].sequence->length() + row);
      sink(request, row, values);
    }
    begin += logits.size<Seq>();
  }
  for (const SequenceTokens& done : requests) done.sequence->advance(done.tokens.size());
}

void Forward::step(std::span<const SequenceTokens> requests, const StepSink& sink) {
  const ScopedFloatControl float_control;
  std::size_t rows = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (requests[i].sequence == requests[j].sequence) throw_bad_request("forward: a sequence is in the step twice");
    }
    check_request(requests[i], requests[i].tokens.size());
    rows += requests[i].tokens.size();
  }
  if (rows > chunk()) {
    throw_bad_request("forward: the step has " + std::to_string(rows) + " tokens, the chunk holds " + std::to_string(chunk()));
  }
  if (rows > 0) run_step(requests, sink);
}

std::span<const float> Forward::prefill(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens) {
  const ScopedFloatControl float_control;
  check_start(sequence, pos0);
  check_request({&sequence, tokens}, chunk());
  std::span<const float> logits;
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t n = std::min(chunk(), tokens.size() - done);
    const bool last = done + n == tokens.size();
    const SequenceTokens request{&sequence, tokens.subspan(done, n), last ? Wanted::kLast : Wanted::kNone};
    run_step({&request, 1}, [&](std::size_t, std::size_t, std::span<const float> values) { logits = values; });
    done += n;
  }
  return logits;
}

std::span<const float> Forward::decode(KvSequence& sequence, std::size_t pos0, TokenId token) {
  return prefill(sequence, pos0, std::span(&token, 1));
}

void Forward::in_chunks(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens, const ChunkWork& work) {
  const ScopedFloatControl float_control;
  check_start(sequence, pos0);
  check_request({&sequence, tokens}, chunk());
  for (std::size_t done = 0; done < tokens.size(); done += chunk()) {
    work(done, {&sequence, tokens.subspan(done, std::min(chunk(), tokens.size() - done)), Wanted::kAll});
  }
}

void Forward::prefill_all(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens, const LogitSink& sink) {
  in_chunks(sequence, pos0, tokens, [&](std::size_t done, const SequenceTokens& request) {
    run_step({&request, 1}, [&](std::size_t, std::size_t row, std::span<const float> values) { sink(done + row, values); });
  });
}

void Forward::prefill_hidden(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens, const LogitSink& sink) {
  in_chunks(sequence, pos0, tokens, [&](std::size_t done, const SequenceTokens& request) {
    const std::size_t n = request.tokens.size();
    sequence.prepare(n);
    Step step(model_, compute_, *scratch_, {&request, 1});
    step.run();
    const auto hidden = step.hidden(0, n);
    for (std::size_t row = 0; row < n; ++row) {
      const auto values = hidden.row(row).elements();
      check_logits(values, pos0 + done + row);
      sink(done + row, values);
    }
    sequence.advance(n);
  });
}

}  // namespace quench
