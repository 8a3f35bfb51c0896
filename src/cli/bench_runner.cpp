#include "cli/bench_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/memory.h"
#include "base/profile.h"
#include "cli/terminal.h"

namespace quench::cli {
namespace {

std::size_t most_positions(std::span<const BenchTest> tests) {
  std::size_t most = 1;
  for (const BenchTest& test : tests) most = std::max(most, test.depth + test.tokens);
  return most;
}

/// As many sequences as the widest test has, as long as the longest test and the page that a fork copies, besides what every depth holds.
KvCache::Options cache_options(const KvLayout& layout, std::size_t chunk, std::span<const BenchTest> tests) {
  const std::size_t most = most_positions(tests);
  std::size_t widest = 1;
  for (const BenchTest& test : tests) widest = std::max(widest, test.sequences);
  std::uint64_t bytes = widest * layout.bytes_for(most + kPagePositions, chunk);
  std::set<std::size_t> depths;
  for (const BenchTest& test : tests) {
    if (test.depth > 0 && depths.insert(test.depth).second) bytes += layout.bytes_for(test.depth, chunk);
  }
  const std::uint64_t available = available_memory_bytes();
  if (bytes > available) {
    throw_bad_request(fmt::format("bench: the longest test has {} positions, which take {} of cache; {} are free: lower -p, -n, -d or -s",
                                  most, human_bytes(bytes), human_bytes(available)));
  }
  return {.budget_bytes = bytes, .context = most};
}

std::vector<Token> some_tokens(std::size_t n, std::size_t n_vocab) {
  std::vector<Token> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<Token>((1000 + i * 7919) % n_vocab);
  return tokens;
}

/// What Qwen3's card asks for.
SamplerSettings usual_sampling() {
  SamplerSettings settings;
  settings.temperature = 0.6;
  settings.top_k = 20;
  settings.top_p = 0.95;
  settings.seed = 1;
  return settings;
}

}  // namespace

BenchRunner::BenchRunner(const Model& model, const KvLayout& layout, const Compute& compute, std::size_t chunk,
                         std::span<const BenchTest> tests)
    : profile_(compute.profile),
      forward_(model, compute, {.chunk = chunk}),
      cache_(layout, cache_options(layout, forward_.chunk(), tests)),
      tokens_(some_tokens(most_positions(tests), model.config().n_vocab)) {
  if (profile_ != nullptr) sampler_.emplace(usual_sampling(), model.config().n_vocab);
  warm_up();
}

void BenchRunner::warm_up() {
  constexpr std::size_t kTokens = 64;
  KvSequence sequence(cache_);
  const auto tokens = std::span(tokens_).first(std::min(kTokens, tokens_.size()));
  if (tokens.size() > 1) (void)forward_.prefill(sequence, 0, tokens.first(tokens.size() - 1));
  (void)forward_.decode(sequence, sequence.length(), tokens.back());
}

const KvSequence& BenchRunner::filled(std::size_t depth) {
  const auto after = by_depth_.upper_bound(depth);
  if (after != by_depth_.begin() && std::prev(after)->first == depth) return std::prev(after)->second;
  KvSequence sequence = after == by_depth_.begin() ? KvSequence(cache_) : std::prev(after)->second.fork();
  const std::size_t held = sequence.length();
  if (depth > held) (void)forward_.prefill(sequence, held, std::span(tokens_).subspan(held, depth - held));
  return by_depth_.emplace(depth, std::move(sequence)).first->second;
}

double BenchRunner::run(const BenchTest& test) {
  const KvSequence& prefix = filled(test.depth);
  std::vector<KvSequence> sequences;
  for (std::size_t i = 0; i < test.sequences; ++i) sequences.push_back(prefix.fork());
  const auto tokens = std::span(tokens_).subspan(test.depth, test.tokens);
  const double start = now_seconds();
  if (profile_ != nullptr) profile_->start();
  if (test.kind == BenchTest::Kind::kPrefill) {
    (void)forward_.prefill(sequences.front(), test.depth, tokens);
  } else if (test.sequences == 1) {
    decode(sequences.front(), tokens);
  } else {
    decode_side_by_side(sequences, tokens);
  }
  if (profile_ != nullptr) profile_->stop();
  return now_seconds() - start;
}

void BenchRunner::decode(KvSequence& sequence, std::span<const Token> tokens) {
  for (const Token token : tokens) sample(forward_.decode(sequence, sequence.length(), token));
}

void BenchRunner::decode_side_by_side(std::span<KvSequence> sequences, std::span<const Token> tokens) {
  std::vector<SequenceTokens> requests(sequences.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (std::size_t s = 0; s < sequences.size(); ++s) requests[s] = {&sequences[s], tokens.subspan(i, 1)};
    forward_.step(requests, [&](std::size_t, std::size_t, std::span<const float> logits) { sample(logits); });
  }
}

void BenchRunner::sample(std::span<const float> logits) {
  if (!sampler_) return;
  const ProfileScope scope(profile_, "sampler");
  (void)sampler_->next(logits);
}

}  // namespace quench::cli
