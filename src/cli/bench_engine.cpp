#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/model_options.h"
#include "cli/option_values.h"
#include "cli/samples.h"
#include "cli/terminal.h"
#include "engine/batch_engine.h"
#include "engine/chat_prompt.h"
#include "engine/step_backend.h"

namespace quench::cli {
namespace {

constexpr std::uint64_t kPromptsLimitBytes = std::uint64_t{16} << 20;
constexpr std::size_t kShortPrompt = 64;

struct BenchEngineOptions {
  ModelOptions model;
  std::size_t prefix = 1800;
  std::size_t long_prompt = 4096;
  std::string prompts;
  std::size_t answer = 128;
  std::string chat_template;
  int repetitions = 3;
};

/// What one answer took.
struct Timing {
  AnswerReport report;
  std::vector<Token> tokens;
  bool done = false;

  [[nodiscard]] double first_token_seconds() const { return report.first_token - report.submitted; }
  [[nodiscard]] double decode_seconds() const { return report.ended - report.first_token; }
};

class TimingListener final : public RequestListener {
 public:
  explicit TimingListener(std::shared_ptr<Timing> timing) : timing_(std::move(timing)) {}
  bool on_token(std::size_t, Token token, std::span<const float>) override {
    timing_->tokens.push_back(token);
    return true;
  }
  void on_end(std::size_t, const AnswerReport& report, Sampler&) noexcept override {
    timing_->report = report;
    timing_->done = true;
  }

 private:
  std::shared_ptr<Timing> timing_;
};

/// An engine with the defaults of one that serves many, and an empty cache.
class FreshEngine {
 public:
  FreshEngine(const LoadedModel& loaded, Forward& forward, std::size_t positions, std::size_t most_draft)
      : cache_(loaded.kv_layout(), {.budget_bytes = loaded.kv_layout().bytes_for(positions, forward.chunk()), .context = positions}),
        backend_(forward),
        engine_(backend_, cache_, {.most_draft = most_draft}) {}

  BatchEngine& engine() { return engine_; }
  std::shared_ptr<Timing> submit(std::vector<Token> prompt, std::size_t max_new_tokens, std::vector<Token> stop_ids = {}) {
    auto timing = std::make_shared<Timing>();
    EngineRequest request;
    request.prompt = std::move(prompt);
    request.max_new_tokens = max_new_tokens;
    request.stop_ids = std::move(stop_ids);
    request.samplers.emplace_back(SamplerSettings{}, engine_.vocab_size());
    request.listener = std::make_unique<TimingListener>(timing);
    engine_.submit(std::move(request));
    return timing;
  }
  void finish() {
    while (engine_.step()) {
    }
  }

 private:
  KvCache cache_;
  ForwardBackend backend_;
  BatchEngine engine_;
};

class EngineBench {
 public:
  EngineBench(const BenchEngineOptions& options, const LoadedModel& loaded)
      : options_(options),
        loaded_(loaded),
        forward_(loaded.model, loaded.compute, {.chunk = static_cast<std::size_t>(options.model.chunk)}) {}

  void shared_prefix();
  void newcomer();
  void speculation(const Tokenizer& tokenizer, const ChatTemplate* chat_template);

 private:
  [[nodiscard]] std::vector<Token> random_tokens(std::size_t n) {
    std::vector<Token> tokens(n);
    for (Token& token : tokens) token = static_cast<Token>(random_.below(loaded_.model.config().n_vocab));
    return tokens;
  }

  const BenchEngineOptions& options_;
  const LoadedModel& loaded_;
  Forward forward_;
  Xoshiro256 random_{1};
};

/// The second request of two that share a prompt but for its end.
void EngineBench::shared_prefix() {
  Samples first;
  Samples second;
  for (int i = 0; i < options_.repetitions; ++i) {
    FreshEngine fresh(loaded_, forward_, 2 * (options_.prefix + 2 * kShortPrompt), 0);
    const auto system = random_tokens(options_.prefix);
    for (Samples* samples : {&first, &second}) {
      auto prompt = system;
      for (const Token token : random_tokens(kShortPrompt / 2)) prompt.push_back(token);
      const auto timing = fresh.submit(std::move(prompt), 1);
      fresh.finish();
      samples->add(timing->first_token_seconds());
    }
  }
  write_answer(fmt::format("shared prefix of {} tokens: first token after {:.3f} s, the second request's after {:.3f} s ({:.1f} %)\n",
                           options_.prefix, first.median(), second.median(), 100.0 * second.median() / first.median()));
}

/// A short request while a long prompt is being computed.
void EngineBench::newcomer() {
  Samples idle;
  Samples beside;
  Samples longest_step;
  for (int i = 0; i < options_.repetitions; ++i) {
    FreshEngine fresh(loaded_, forward_, 2 * options_.long_prompt + 4096, 0);
    // The engine has run before, and knows its steps' times.
    (void)fresh.submit(random_tokens(1024), 4);
    fresh.finish();
    const auto alone = fresh.submit(random_tokens(kShortPrompt), 4);
    fresh.finish();
    idle.add(alone->first_token_seconds());
    const auto long_one = fresh.submit(random_tokens(options_.long_prompt), 1);
    (void)fresh.engine().step();
    const auto timing = fresh.submit(random_tokens(kShortPrompt), 4);
    double longest = 0.0;
    while (!timing->done) {
      const double start = now_seconds();
      (void)fresh.engine().step();
      longest = std::max(longest, now_seconds() - start);
    }
    if (long_one->done)
      throw_bad_request("bench-engine: the long prompt was computed before the short one; give a longer one (--long-prompt)");
    beside.add(timing->first_token_seconds());
    longest_step.add(longest);
    fresh.finish();
  }
  write_answer(fmt::format(
      "short prompt of {} tokens: first token after {:.3f} s alone, {:.3f} s beside a prompt of {} ({:.2f} times; longest step {:.3f} s)\n",
      kShortPrompt, idle.median(), beside.median(), options_.long_prompt, beside.median() / idle.median(), longest_step.median()));
}

struct SpeculationPrompt {
  std::string kind;
  std::vector<Token> tokens;
};

std::vector<SpeculationPrompt> read_prompts(const std::string& file, const Tokenizer& tokenizer, const ChatTemplate* chat_template) {
  std::vector<SpeculationPrompt> prompts;
  const std::string text = read_text(file, kPromptsLimitBytes);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto line = nlohmann::json::parse(text.substr(begin, end - begin), nullptr, false);
    if (!line.is_object() || !line.contains("kind") || !line.contains("prompt") || !line["kind"].is_string() ||
        !line["prompt"].is_string()) {
      throw_bad_request(fmt::format("{}: line {} is no object with the texts \"kind\" and \"prompt\"", file, prompts.size() + 1));
    }
    const auto prompt = line["prompt"].get<std::string>();
    const std::vector<ChatMessage> messages{{Role::kUser, prompt}};
    prompts.push_back(
        {.kind = line["kind"].get<std::string>(),
         .tokens = chat_template != nullptr ? chat_prompt(tokenizer, *chat_template, messages, Thinking::kOff) : tokenizer.encode(prompt)});
    begin = end + 1;
  }
  return prompts;
}

/// Decoding with speculation and without it, in turn.
void EngineBench::speculation(const Tokenizer& tokenizer, const ChatTemplate* chat_template) {
  struct Kind {
    Samples ratios;
    std::size_t drafted = 0;
    std::size_t accepted = 0;
  };
  const auto prompts = read_prompts(options_.prompts, tokenizer, chat_template);
  std::size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.tokens.size());
  std::map<std::string, Kind> kinds;
  std::vector<std::array<Samples, 2>> seconds(prompts.size());
  for (int i = 0; i < options_.repetitions; ++i) {
    // New engines, or the guesses would remember the answers. One for each way, so that both learn their steps' times.
    FreshEngine with(loaded_, forward_, longest + options_.answer + kPagePositions, BatchEngineOptions{}.most_draft);
    FreshEngine without(loaded_, forward_, longest + options_.answer + kPagePositions, 0);
    for (std::size_t p = 0; p < prompts.size(); ++p) {
      std::vector<Token> answers[2];
      for (std::size_t way = 0; way < 2; ++way) {
        FreshEngine& fresh = way == 0 ? without : with;
        fresh.engine().prefix_cache().clear();
        const auto timing = fresh.submit(prompts[p].tokens, options_.answer, tokenizer.end_tokens());
        fresh.finish();
        seconds[p][way].add(timing->decode_seconds());
        answers[way] = timing->tokens;
        kinds[prompts[p].kind].drafted += timing->report.drafted_tokens;
        kinds[prompts[p].kind].accepted += timing->report.accepted_tokens;
      }
      if (answers[0] != answers[1]) throw Error(ErrorKind::kCheckFailed, "speculation changed an answer");
      // An answer of a token or two says nothing about pace.
      if (i + 1 == options_.repetitions && answers[0].size() > 8) {
        kinds[prompts[p].kind].ratios.add(seconds[p][0].median() / seconds[p][1].median());
      }
    }
  }
  for (const auto& [name, kind] : kinds) {
    if (kind.ratios.empty()) continue;
    write_answer(fmt::format("speculation, {}: {} prompts, {:.2f} times as fast (median; {:.2f} to {:.2f}), {} of {} guesses came true\n",
                             name, kind.ratios.values().size(), kind.ratios.median(), kind.ratios.min(), kind.ratios.max(), kind.accepted,
                             kind.drafted));
  }
}

int run_bench_engine(BenchEngineOptions options) {
  const std::string path = options.model.take_model(0);
  const LoadedModel loaded(path, options.model);
  write_answer(fmt::format("{}, {}, {} threads, {}\n", cpu_features().processor, loaded.compute.kernels.name, loaded.pool.thread_count(),
                           loaded.reader.path().filename().string()));
  EngineBench bench(options, loaded);
  if (options.prefix > 0) bench.shared_prefix();
  if (options.long_prompt > 0) bench.newcomer();
  if (options.prompts.empty()) return 0;
  const auto tokenizer = loaded.make_tokenizer(options.model);
  const auto chat_template =
      options.chat_template.empty() ? chat_template_from(loaded.reader.metadata()) : chat_template_by_name(options.chat_template);
  bench.speculation(*tokenizer, chat_template.get());
  return 0;
}

}  // namespace

void add_bench_engine(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchEngineOptions>();
  CLI::App* command = app.add_subcommand("bench-engine", "Measure shared prefixes, requests beside long prompts, and speculation");
  command->footer(
      "Each figure is the median of the repetitions; the two sides of a ratio are measured in turn.\n"
      "Example:\n  quench bench-engine model.gguf --prompts bench/speculation/prompts.jsonl");
  add_model_argument(*command, options->model, "MODEL", "GGUF file");
  const auto count = [&](const char* name, auto& value, const char* help, std::uint64_t low, std::uint64_t high) {
    command->add_option(name, value, help)->check(whole_number(static_cast<std::int64_t>(low), high))->type_name("N");
  };
  count("--prefix", options->prefix, "Tokens that two requests share; 0 = do not measure", 0, kMostPositions);
  count("--long-prompt", options->long_prompt, "Tokens of the prompt that a short one comes to; 0 = do not measure", 0, kMostPositions);
  command->add_option("--prompts", options->prompts, "Speculation on these: a line for each, {\"kind\": \"...\", \"prompt\": \"...\"}")
      ->check(some_path())
      ->type_name("FILE");
  count("-n,--answer", options->answer, "Most tokens of an answer with speculation", 1, kMostPositions);
  count("-r,--repetitions", options->repetitions, "Repetitions; medians are shown", 1, 1000);
  command->add_option("--chat-template", options->chat_template, "chatml, llama3, gemma or gemma4 instead of what the file calls for")
      ->type_name("NAME");
  add_compute_options(*command, options->model);
  command->callback([options, &action] { action = [options] { return run_bench_engine(*options); }; });
}

}  // namespace quench::cli
