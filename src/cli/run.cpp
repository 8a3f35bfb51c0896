#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/interrupt.h"
#include "cli/local_engine.h"
#include "cli/model_options.h"
#include "cli/option_values.h"
#include "cli/sampling_options.h"
#include "cli/terminal.h"
#include "engine/answer_stream.h"
#include "engine/engine_thread.h"
#include "engine/generation.h"

namespace quench::cli {
namespace {

constexpr std::uint64_t kMostStreams = 256;
constexpr std::uint64_t kMostSeed = std::numeric_limits<std::int64_t>::max();
/// How soon Ctrl-C is heard.
constexpr std::chrono::milliseconds kInterruptPoll{20};

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  GenerationFlags generation;
  std::optional<std::string> prompt;
  std::optional<std::string> file;
  std::optional<std::string> ids;
  bool print_ids = false;
  bool print_prompt = false;
  bool special = false;
  bool no_escape = false;
  std::size_t streams = 1;
};

std::vector<Token> prompt_tokens(const RunOptions& options, const Tokenizer& tokenizer) {
  if (options.ids) return parse_ids(*options.ids);
  if (options.file) return tokenizer.encode(read_text(*options.file, kTextFileLimitBytes));
  return tokenizer.encode(options.no_escape ? *options.prompt : process_escapes(*options.prompt));
}

/// One of several continuations, under a line that tells it from the others. A greedy one draws nothing, so its seed says nothing.
void write_stream(const RunOptions& options, const Tokenizer& tokenizer, const std::vector<Token>& prompt, std::size_t number,
                  const SamplerSettings& settings, const GenerationResult& result) {
  write_answer(fmt::format("--- {} of {}", number, options.streams) +
               (settings.greedy() ? std::string("\n") : fmt::format(", seed {}\n", *settings.seed)));
  if (options.print_ids) {
    for (const Token token : result.tokens) write_answer(fmt::format("{}\n", token));
  } else {
    if (options.print_prompt) write_answer(tokenizer.decode(prompt, options.special));
    write_answer(result.text + "\n");
  }
  if (options.generation.stats) print_stats(result);
  if (result.finish == FinishReason::kContextFull) fmt::print(stderr, "quench: stopped: the context is full\n");
}

/// Continues the prompt several times side by side, the first with the seed and each other with the next one, and prints them in order.
int run_streams(const RunOptions& options, BatchEngine& engine, const Tokenizer& tokenizer, SamplerSettings settings,
                const std::vector<Token>& prompt, const GenerationOptions& generation) {
  if (!settings.seed) settings.seed = settings.greedy() ? 0 : random_seed();
  if (*settings.seed > kMostSeed - (options.streams - 1))
    throw_bad_request("--streams: the last of the seeds would be too large for --seed");
  const double start = now_seconds();
  const InterruptGuard interrupt;
  EngineThread thread(engine);
  std::size_t n_tokens = 0;
  bool cancelled = false;
  for (std::size_t done = 0; done < options.streams && !cancelled;) {
    // One request: its answers share the prompt's computation, whatever its length.
    StreamRequest request{.prompt = prompt, .options = generation};
    std::vector<SamplerSettings> group;
    while (group.size() < engine.max_running() && done + group.size() < options.streams) {
      group.push_back(settings);
      request.samplers.emplace_back(settings, engine.vocab_size());
      settings.seed = *settings.seed + 1;
    }
    AnswerStream stream(thread, tokenizer, std::move(request));
    std::vector<bool> ended(group.size(), false);
    std::size_t written = 0;
    while (!stream.done()) {
      const auto event = stream.next_within(kInterruptPoll);
      if (event && event->kind == AnswerEvent::Kind::kEnd) ended[event->answer] = true;
      for (; written < group.size() && ended[written]; ++written) {
        const GenerationResult result = stream.take(written);
        cancelled = cancelled || result.finish == FinishReason::kCancelled;
        n_tokens += result.tokens.size();
        write_stream(options, tokenizer, prompt, done + written + 1, group[written], result);
      }
      if (interrupt_flag().load()) stream.cancel();
    }
    done += group.size();
  }
  if (options.generation.stats) {
    const double seconds = now_seconds() - start;
    fmt::print(stderr, "{} streams together: {} tokens in {:.2f} s, {:.1f} tok/s\n", options.streams, n_tokens, seconds,
               static_cast<double>(n_tokens) / seconds);
  }
  return cancelled ? kInterruptedExitCode : 0;
}

int run_completion(RunOptions options) {
  const int sources = int{options.prompt.has_value()} + int{options.file.has_value()} + int{options.ids.has_value()};
  if (sources != 1) throw_bad_request("give the prompt with exactly one of -p TEXT, -f FILE or --ids IDS");
  LoadedModel loaded(options.model.take_model(0), options.model);
  const auto tokenizer = loaded.make_tokenizer(options.model);
  const std::vector<Token> prompt = prompt_tokens(options, *tokenizer);
  if (prompt.empty()) throw_bad_request("the prompt is empty: there is nothing to continue");
  LocalEngine local(loaded, options.model, options.streams);
  const ContextPlan& plan = local.plan();
  const SamplerSettings settings = options.sampling.settings(sampling_defaults("", false), *tokenizer);
  GenerationOptions generation = options.generation.generation_options(*tokenizer, /*default_tokens=*/plan.context);
  generation.with_specials = options.special;
  generation.must_fit = options.generation.max_tokens_given();
  if (options.streams > 1) {
    const int code = naming_file(loaded.reader.path().string(),
                                 [&] { return run_streams(options, local.engine(), *tokenizer, settings, prompt, generation); });
    local.save_cache();
    return code;
  }
  Sampler sampler(settings, loaded.model.config().n_vocab);
  if (!settings.greedy()) fmt::print(stderr, "seed: {}\n", sampler.seed());
  const InterruptGuard interrupt;
  GenerationHooks hooks;
  hooks.cancel = &interrupt_flag();
  if (options.print_prompt && !options.print_ids) write_answer(tokenizer->decode(prompt, options.special));
  if (options.print_ids) {
    hooks.on_token = [](Token token) { write_answer(fmt::format("{}\n", token)); };
  } else {
    hooks.on_text = [](std::string_view text) { write_answer(text); };
  }
  const GenerationResult result =
      naming_file(loaded.reader.path().string(), [&] { return generate(local.engine(), *tokenizer, sampler, prompt, generation, hooks); });
  if (!options.print_ids && stdout_is_terminal()) write_answer("\n");
  local.save_cache();
  if (options.generation.stats) print_stats(result);
  if (result.finish == FinishReason::kContextFull) {
    fmt::print(stderr, "quench: stopped: the context of {} tokens is full\n", plan.context);
  }
  return result.finish == FinishReason::kCancelled ? kInterruptedExitCode : 0;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Continue a text");
  command->footer(
      "Example:\n  quench run model.gguf -p 'Once upon a time' -n 64 --temp 0\n"
      "Special tokens in the prompt (<|im_start|>) are recognised, as in no message of chat.");
  add_model_argument(*command, options->model, "MODEL", "GGUF file");
  command->add_option("-p,--prompt", options->prompt, "The text to continue; special tokens in it are recognised")->type_name("TEXT");
  command->add_option("-f,--file", options->file, "Read it from a file, - for standard input")->check(some_path())->type_name("FILE");
  command->add_option("--ids", options->ids, "The prompt as token ids")->type_name("IDS");
  command->add_flag("--print-ids", options->print_ids, "Print ids, one a line, instead of text");
  command->add_flag("--print-prompt", options->print_prompt, "Print the prompt before the continuation");
  command->add_flag("--special", options->special, "Show control tokens in the text");
  command->add_flag("--no-escape", options->no_escape, "Take \\n and the like in -p literally");
  command
      ->add_option("--streams", options->streams, "Continuations side by side, with seeds one apart; printed in order, each under a line")
      ->check(whole_number(1, kMostStreams))
      ->type_name("N");
  options->generation.add_to(*command, "Most tokens to generate; -1 or absent = until the model ends the text or the context is full");
  add_compute_options(*command, options->model);
  add_engine_options(*command, options->model);
  add_tokenizer_options(*command, options->model);
  options->sampling.add_to(*command);
  command->callback([options, &action] { action = [options] { return run_completion(*options); }; });
}

}  // namespace quench::cli
