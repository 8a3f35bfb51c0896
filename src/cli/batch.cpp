#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/append_file.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/interrupt.h"
#include "cli/local_engine.h"
#include "cli/model_options.h"
#include "cli/option_values.h"
#include "cli/sampling_options.h"
#include "cli/terminal.h"
#include "engine/batch_file.h"
#include "engine/chat_prompt.h"

namespace quench::cli {
namespace {

constexpr std::uint64_t kBatchFileLimitBytes = std::uint64_t{1} << 30;
constexpr std::size_t kDefaultParallel = 16;
constexpr std::size_t kMostParallel = 512;

struct BatchOptions {
  ModelOptions model;
  SamplingOptions sampling;
  GenerationFlags generation;
  std::string out;
  std::string chat_template;
  std::size_t parallel = kDefaultParallel;
};

/// A line of the input that asks for something.
struct InputLine {
  BatchResultKey key;
  std::string_view text;
};

std::vector<InputLine> lines_of(std::string_view text) {
  std::vector<InputLine> lines;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    lines.push_back({.key = {.line = number, .input_hash = batch_input_hash(line)}, .text = line});
  }
  return lines;
}

/// How many of the lines have their result in `out` already. Cuts off the unfinished line that a kill left. Throws Error(kBadFile) when the
/// results are of another input.
std::size_t results_there(AppendFile& out, const std::string& name, std::span<const InputLine> lines) {
  const std::string contents = out.contents();
  std::size_t n_results = 0;
  std::size_t begin = 0;
  for (std::size_t end; (end = contents.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const bool same =
        n_results < lines.size() &&
        naming_file(
            name, [&] { return read_batch_result_key(std::string_view(contents).substr(begin, end - begin)) == lines[n_results].key; });
    if (!same) {
      throw_bad_file(fmt::format("{}: result {} is of another input; name another file, or remove this one", name, n_results + 1));
    }
    ++n_results;
  }
  if (begin < contents.size()) out.truncate(begin);
  return n_results;
}

/// A request under way, or what its error says.
struct Job {
  BatchResultKey key;
  std::string id_json = "null";
  std::optional<Generation> generation;
  std::string error;

  [[nodiscard]] bool done() const { return !generation || generation->done(); }
};

class BatchRun {
 public:
  BatchRun(const BatchOptions& options, LoadedModel& loaded, std::unique_ptr<ChatTemplate> chat_template)
      : options_(options),
        local_(loaded, options.model, options.parallel),
        tokenizer_(loaded.make_tokenizer(options.model)),
        template_(std::move(chat_template)),
        defaults_(options.generation.generation_options(*tokenizer_, kDefaultTokens)),
        sampler_(options.sampling.settings(sampling_defaults(loaded.model.config().architecture, false), *tokenizer_)),
        seed_(sampler_.seed.value_or(0)) {
    sampler_.seed.reset();
  }

  void save_cache() { local_.save_cache(); }
  /// False when interrupted. Results go to `out` in the order of the lines.
  bool run(std::span<const InputLine> lines, AppendFile& out, std::size_t done, std::size_t total);
  [[nodiscard]] std::size_t n_failed() const noexcept { return n_failed_; }

 private:
  static constexpr std::size_t kDefaultTokens = 2048;

  [[nodiscard]] Job start(const InputLine& line);
  [[nodiscard]] Generation start_request(const BatchRequest& request, std::uint64_t line);
  [[nodiscard]] std::string result_of(Job& job);

  const BatchOptions& options_;
  LocalEngine local_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
  GenerationOptions defaults_;
  SamplerSettings sampler_;  ///< what a request starts from
  std::uint64_t seed_;       ///< of line 0
  std::size_t n_failed_ = 0;
};

Generation BatchRun::start_request(const BatchRequest& request, std::uint64_t line) {
  if (request.max_tokens == std::size_t{0}) throw_bad_request("\"max_tokens\" of 0 asks for no answer");
  std::vector<Token> prompt;
  if (request.prompt) {
    prompt = tokenizer_->encode(*request.prompt);
  } else if (template_) {
    prompt = chat_prompt(*tokenizer_, *template_, request.messages, Thinking::kDefault);
  } else {
    throw_bad_request("\"messages\" need a chat template, and the model's file names none that is built in; give --chat-template");
  }
  GenerationOptions generation = defaults_;
  generation.must_fit = request.max_tokens.has_value();
  generation.max_new_tokens = request.max_tokens.value_or(defaults_.max_new_tokens);
  generation.stop_texts.insert(generation.stop_texts.end(), request.stop_texts.begin(), request.stop_texts.end());
  SamplerSettings settings = request.sampler;
  // The same command gives the same answers, whatever was done before an interruption.
  if (!settings.seed) settings.seed = seed_ + line;
  return start_generation(local_.engine(), *tokenizer_, Sampler(settings, tokenizer_->vocab_size()), std::move(prompt), generation);
}

Job BatchRun::start(const InputLine& line) {
  Job job;
  job.key = line.key;
  try {
    const BatchRequest request = read_batch_request(line.text, sampler_);
    job.id_json = request.id_json;
    job.generation = start_request(request, line.key.line);
  } catch (const Error& error) {
    job.error = error.what();
  }
  return job;
}

std::string BatchRun::result_of(Job& job) {
  try {
    if (job.generation) return write_batch_result(job.key, job.id_json, job.generation->take());
  } catch (const Error& error) {
    job.error = error.what();
  }
  ++n_failed_;
  return write_batch_error(job.key, job.id_json, job.error);
}

bool BatchRun::run(std::span<const InputLine> lines, AppendFile& out, std::size_t done, std::size_t total) {
  std::deque<Job> jobs;
  std::size_t next = 0;
  while (next < lines.size() || !jobs.empty()) {
    if (interrupt_flag().load()) return false;
    // Enough behind those that run to fill every place that becomes free.
    while (next < lines.size() && jobs.size() < 2 * options_.parallel) jobs.push_back(start(lines[next++]));
    local_.engine().step();
    for (; !jobs.empty() && jobs.front().done(); jobs.pop_front()) {
      out.append(result_of(jobs.front()));
      ++done;
      if (stderr_is_terminal()) fmt::print(stderr, "\rbatch: {} of {} ", done, total);
    }
  }
  return true;
}

int run_batch(BatchOptions options) {
  const std::string path = options.model.take_model(1);
  if (options.model.words.empty()) throw_bad_request("batch: name the file of requests, one JSON object a line");
  if (options.out.empty()) throw_bad_request("batch: name the file of results with --out");
  const std::string text = read_text(options.model.words.front(), kBatchFileLimitBytes);
  const std::vector<InputLine> lines = lines_of(text);
  AppendFile out(options.out);
  const std::size_t there = results_there(out, options.out, lines);
  if (there > 0) fmt::print(stderr, "batch: {} of {} results are there already\n", there, lines.size());
  if (there == lines.size()) return 0;
  LoadedModel loaded(path, options.model);
  auto chat_template =
      options.chat_template.empty() ? chat_template_from(loaded.reader.metadata()) : chat_template_by_name(options.chat_template);
  BatchRun run(options, loaded, std::move(chat_template));
  const InterruptGuard interrupt;
  const bool finished = run.run(std::span(lines).subspan(there), out, there, lines.size());
  if (stderr_is_terminal()) fmt::print(stderr, "\n");
  run.save_cache();
  if (!finished) {
    fmt::print(stderr, "batch: interrupted; the same command goes on from here\n");
    return kInterruptedExitCode;
  }
  if (run.n_failed() == 0) return 0;
  fmt::print(stderr, "batch: {} of {} requests failed; their lines say why\n", run.n_failed(), lines.size());
  return exit_code(ErrorKind::kCheckFailed);
}

}  // namespace

void add_batch(CLI::App& app, Action& action) {
  auto options = std::make_shared<BatchOptions>();
  CLI::App* command = app.add_subcommand("batch", "Answer a file of requests");
  command->footer(
      "Example:\n  quench batch model.gguf requests.jsonl --out results.jsonl\n"
      "A request is {\"prompt\": \"...\"} or {\"messages\": [...]}, with \"id\", \"max_tokens\", \"stop\", \"seed\" and sampling settings "
      "as it "
      "likes. Results come in the order of the requests; after an interruption the same command goes on where it ended.");
  add_model_argument(*command, options->model, "MODEL REQUESTS", "GGUF file; requests, one JSON object a line, - for standard input");
  command->add_option("-o,--out", options->out, "Results, one JSON object a line; those of an earlier, interrupted run stay")
      ->type_name("FILE");
  command->add_option("--parallel,--np", options->parallel, "Answers computed side by side")
      ->check(whole_number(1, kMostParallel))
      ->type_name("N");
  command->add_option("--chat-template", options->chat_template, "chatml, llama3, gemma or gemma4 instead of what the file calls for")
      ->type_name("NAME");
  options->generation.add_to(*command, "Most tokens of an answer without \"max_tokens\"; 2048 without it, -1 = until the context is full");
  add_compute_options(*command, options->model);
  add_engine_options(*command, options->model);
  add_tokenizer_options(*command, options->model);
  options->sampling.add_to(*command);
  command->callback([options, &action] { action = [options] { return run_batch(*options); }; });
}

}  // namespace quench::cli
