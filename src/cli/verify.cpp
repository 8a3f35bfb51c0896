#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/model_options.h"
#include "cli/option_values.h"
#include "cli/terminal.h"
#include "engine/logit_comparison.h"

namespace quench::cli {
namespace {

constexpr std::array<std::size_t, 11> kChunks = {1, 2, 3, 7, 16, 63, 64, 65, 128, 511, 512};
constexpr int kMostThreads = 8;
constexpr std::size_t kUsualTokens = 700;
constexpr std::size_t kTimedPromptTokens = 16;
constexpr std::size_t kTimedTokens = 64;

struct VerifyOptions {
  ModelOptions model;
  std::optional<std::size_t> tokens;
  bool hash_only = false;
  bool quick = false;
  bool time = false;
};

/// The prompt is a function of the vocabulary size alone, so that hashes can be compared between machines.
std::vector<Token> verify_prompt(std::size_t n_tokens, std::size_t n_vocab) {
  Xoshiro256 random(0x71656E6368);
  std::vector<Token> tokens(n_tokens);
  for (Token& token : tokens) token = static_cast<Token>(random.below(n_vocab));
  return tokens;
}

/// Hash of logit rows in order.
class RowHash {
 public:
  RowHash() { XXH3_64bits_reset(state_.get()); }
  void add(std::span<const float> row) { XXH3_64bits_update(state_.get(), row.data(), row.size_bytes()); }
  [[nodiscard]] std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

class Verifier {
 public:
  Verifier(const LoadedModel& loaded, std::vector<Token> prompt) : loaded_(loaded), prompt_(std::move(prompt)) {}

  [[nodiscard]] std::uint64_t cached(std::size_t chunk, int threads) const {
    ThreadPool pool(threads);
    Forward forward(loaded_.model, {loaded_.compute.kernels, pool}, {.chunk = chunk});
    KvCache cache = make_cache(forward);
    KvSequence sequence(cache);
    RowHash hash;
    forward.prefill_all(sequence, 0, prompt_, [&](std::size_t, std::span<const float> row) { hash.add(row); });
    return hash.value();
  }

  [[nodiscard]] std::uint64_t uncached() const {
    RowHash hash;
    forward_uncached(
        loaded_.model, loaded_.compute, prompt_, [&](std::size_t, std::span<const float> row) { hash.add(row); }, loaded_.cache_type);
    return hash.value();
  }

  /// The prompt in sequences that share their steps, each at a pace of its own: every one gives the same rows.
  [[nodiscard]] bool batched_matches(std::uint64_t reference) const {
    constexpr std::array<std::size_t, 5> kPaces = {1, 3, 17, 40, 67};
    Forward forward(loaded_.model, loaded_.compute, {.chunk = 128});
    const KvLayout layout = loaded_.kv_layout();
    const std::size_t positions = prompt_.size() + kPagePositions;
    KvCache cache(layout, {.budget_bytes = kPaces.size() * layout.bytes_for(positions, forward.chunk()), .context = positions});
    std::vector<KvSequence> sequences;
    std::array<RowHash, kPaces.size()> hashes;
    for (std::size_t i = 0; i < kPaces.size(); ++i) sequences.emplace_back(cache);
    for (;;) {
      std::vector<SequenceTokens> requests;
      std::vector<std::size_t> who;
      std::size_t room = forward.chunk();
      for (std::size_t i = 0; i < kPaces.size(); ++i) {
        const std::size_t done = sequences[i].length();
        const std::size_t n = std::min({kPaces[i], prompt_.size() - done, room});
        if (n == 0) continue;
        room -= n;
        requests.push_back({&sequences[i], std::span(prompt_).subspan(done, n), Wanted::kAll});
        who.push_back(i);
      }
      if (requests.empty()) break;
      forward.step(requests, [&](std::size_t request, std::size_t, std::span<const float> row) { hashes[who[request]].add(row); });
    }
    return std::ranges::all_of(hashes, [&](const RowHash& hash) { return hash.value() == reference; });
  }

  /// Half the prompt, garbage on top, back to a point inside a page, then the rest: the rows as if nothing had happened.
  [[nodiscard]] std::uint64_t truncated_and_replayed() const {
    Forward forward(loaded_.model, loaded_.compute, {.chunk = 64});
    KvCache cache = make_cache(forward);
    KvSequence sequence(cache);
    RowHash hash;
    const auto sink = [&](std::size_t, std::span<const float> row) { hash.add(row); };
    const std::size_t half = prompt_.size() / 2;
    const std::size_t garbage = std::min<std::size_t>(9, prompt_.size() - half);
    const auto prompt = std::span(prompt_);
    forward.prefill_all(sequence, 0, prompt.first(half), sink);
    const std::vector<Token> wrong(garbage, prompt_.back());
    (void)forward.prefill(sequence, half, wrong);
    sequence.truncate(half);
    forward.prefill_all(sequence, half, prompt.subspan(half), sink);
    return hash.value();
  }

  /// The last-row entry gives the last row of the all-rows entry.
  [[nodiscard]] bool last_row_matches() const {
    Forward forward(loaded_.model, loaded_.compute, {.chunk = 128});
    KvCache cache = make_cache(forward);
    KvSequence all(cache);
    std::vector<float> last;
    forward.prefill_all(all, 0, prompt_, [&](std::size_t, std::span<const float> row) { last.assign(row.begin(), row.end()); });
    all.truncate(0);
    const auto single = forward.prefill(all, 0, prompt_);
    return std::equal(last.begin(), last.end(), single.begin(), single.end());
  }

 private:
  [[nodiscard]] KvCache make_cache(const Forward& forward) const {
    const KvLayout layout = loaded_.kv_layout();
    const std::size_t positions = prompt_.size() + kPagePositions;
    return KvCache(layout, {.budget_bytes = layout.bytes_for(positions, forward.chunk()), .context = positions});
  }

  const LoadedModel& loaded_;
  std::vector<Token> prompt_;
};

/// Collects checks and prints each as it is made.
class Report {
 public:
  void check(const std::string& what, bool same) {
    fmt::print(stderr, "  {:<34} {}\n", what, same ? "same bits" : "DIFFERENT");
    ++count_;
    if (!same) ++failures_;
  }
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] int failures() const noexcept { return failures_; }

 private:
  int count_ = 0;
  int failures_ = 0;
};

/// This process's environment with QUENCH_ISA set to `isa`.
std::vector<std::string> environment_for(Isa isa) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("QUENCH_ISA=")) environment.emplace_back(*entry);
  }
  environment.push_back(fmt::format("QUENCH_ISA={}", isa_name(isa)));
  return environment;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Runs this program again for another instruction set and reads the hash that it prints; nothing when it failed.
std::optional<std::uint64_t> hash_on(Isa isa, const std::string& model, const VerifyOptions& options, std::size_t tokens) {
  std::array<int, 2> channel{};
  if (::pipe2(channel.data(), O_CLOEXEC) != 0) throw_io("verify: cannot make a pipe");
  std::vector<std::string> arguments = {"quench",
                                        "verify",
                                        "-m",
                                        model,
                                        "--hash",
                                        "--tokens",
                                        std::to_string(tokens),
                                        "--window",
                                        std::to_string(options.model.window),
                                        "--moe-expert-top-p",
                                        fmt::format("{}", options.model.expert_top_p),
                                        "--cache-type",
                                        options.model.cache_type};
  std::vector<std::string> environment = environment_for(isa);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, channel[1], STDOUT_FILENO);
  pid_t child = 0;
  const int problem =
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers_to(arguments).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(channel[1]);
  if (problem != 0) throw_io("verify: cannot start a process for another instruction set");
  std::string text;
  std::array<char, 64> piece{};
  for (ssize_t n = 0; (n = ::read(channel[0], piece.data(), piece.size())) > 0;) text.append(piece.data(), static_cast<std::size_t>(n));
  ::close(channel[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text.size() < 16) return std::nullopt;
  return std::strtoull(text.c_str(), nullptr, 16);
}

/// 64 greedy tokens with the cache and without it: the same ids, and what each took.
bool timed_generation(const LoadedModel& loaded, std::span<const Token> prompt) {
  const auto start_tokens = prompt.first(std::min(prompt.size(), kTimedPromptTokens));
  Forward forward(loaded.model, loaded.compute, {});
  const KvLayout layout = loaded.kv_layout();
  const std::size_t positions = start_tokens.size() + kTimedTokens;
  KvCache cache(layout, {.budget_bytes = layout.bytes_for(positions, forward.chunk()), .context = positions});
  KvSequence sequence(cache);
  std::vector<Token> with_cache;
  const double start = now_seconds();
  auto logits = forward.prefill(sequence, 0, start_tokens);
  for (std::size_t i = 0; i < kTimedTokens; ++i) {
    with_cache.push_back(static_cast<Token>(argmax(logits)));
    if (i + 1 < kTimedTokens) logits = forward.decode(sequence, sequence.length(), with_cache.back());
  }
  const double cached_seconds = now_seconds() - start;

  std::vector<Token> text(start_tokens.begin(), start_tokens.end());
  const double uncached_start = now_seconds();
  for (std::size_t i = 0; i < kTimedTokens; ++i) {
    Token next = 0;
    forward_uncached(
        loaded.model, loaded.compute, text,
        [&](std::size_t row, std::span<const float> values) {
          if (row + 1 == text.size()) next = static_cast<Token>(argmax(values));
        },
        loaded.cache_type);
    text.push_back(next);
  }
  const double uncached_seconds = now_seconds() - uncached_start;
  const bool same = std::equal(with_cache.begin(), with_cache.end(), text.begin() + static_cast<std::ptrdiff_t>(start_tokens.size()));
  fmt::print(stderr, "  {} tokens: {:.3f} s with the cache, {:.3f} s without, {} ids\n", kTimedTokens, cached_seconds, uncached_seconds,
             same ? "same" : "DIFFERENT");
  return same;
}

/// How long the prompt is: what is asked for, or the usual length where the context holds it.
std::size_t prompt_tokens(const VerifyOptions& options, const LoadedModel& loaded) {
  const Forward forward(loaded.model, loaded.compute, {.chunk = static_cast<std::size_t>(options.model.chunk)});
  const ContextPlan plan = plan_for(loaded, options.model, forward);
  const std::size_t tokens = options.tokens.value_or(std::min(kUsualTokens, plan.context));
  check_fits(plan, options.time ? std::max(tokens, std::min(tokens, kTimedPromptTokens) + kTimedTokens) : tokens);
  return tokens;
}

int run_verify(VerifyOptions options) {
  const std::string path = options.model.take_model(0);
  const LoadedModel loaded(path, options.model);
  const std::vector<Token> prompt = verify_prompt(prompt_tokens(options, loaded), loaded.model.config().n_vocab);
  const Verifier verifier(loaded, prompt);
  const std::uint64_t reference = naming_file(path, [&] { return verifier.cached(512, loaded.pool.thread_count()); });
  if (options.hash_only) {
    write_answer(fmt::format("{:016x}\n", reference));
    return 0;
  }
  fmt::print(stderr, "{} tokens on {} ({}), {} cache, hash of all logits {:016x}\n", prompt.size(), isa_name(loaded.compute.kernels.isa),
             cpu_features().processor, cache_type_name(loaded.cache_type), reference);
  Report report;
  for (const std::size_t chunk : kChunks) {
    if (options.quick && chunk != 7 && chunk != 64) continue;
    report.check(fmt::format("chunks of {}", chunk), verifier.cached(chunk, loaded.pool.thread_count()) == reference);
  }
  for (int threads = 1; threads <= kMostThreads; ++threads) {
    if (options.quick && threads != 3) continue;
    report.check(fmt::format("{} threads", threads), verifier.cached(512, threads) == reference);
  }
  report.check("sequences side by side", verifier.batched_matches(reference));
  report.check("truncate and replay", verifier.truncated_and_replayed() == reference);
  report.check("no cache", verifier.uncached() == reference);
  report.check("last row alone", verifier.last_row_matches());
  for (const Isa isa : available_isas()) {
    if (isa == loaded.compute.kernels.isa) continue;
    report.check(fmt::format("instruction set {}", isa_name(isa)), hash_on(isa, path, options, prompt.size()) == reference);
  }
  if (options.time) report.check("greedy text without the cache", timed_generation(loaded, prompt));
  write_answer(fmt::format("{} {} of {} checks gave the same bits, hash {:016x}\n", report.failures() == 0 ? "PASS" : "FAIL",
                           report.count() - report.failures(), report.count(), reference));
  return report.failures() == 0 ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "Check that chunks, batches, threads, cache and instruction sets give the same bits");
  command->footer(
      "Hashes the logits of every position of a fixed prompt in each way of computing them; exits 1 on any difference.\n"
      "Example:\n  quench verify model.gguf");
  add_model_argument(*command, options->model, "MODEL", "GGUF file");
  add_compute_options(*command, options->model);
  command
      ->add_option("--tokens", options->tokens,
                   fmt::format("Length of the prompt; without it {}, or the context where that is shorter", kUsualTokens))
      ->check(whole_number(2, 100000))
      ->type_name("N");
  command->add_flag("--quick", options->quick, "Two chunk sizes and one thread count only");
  command->add_flag("--time", options->time, "Also generate 64 tokens with and without the cache, and time both");
  command->add_flag("--hash", options->hash_only, "Print the hash only");
  command->callback([options, &action] { action = [options] { return run_verify(*options); }; });
}

}  // namespace quench::cli
