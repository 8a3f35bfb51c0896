#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/terminal.h"
#include "engine/logit_comparison.h"

namespace quench::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "logit files are little-endian f32");

struct LogitsOptions {
  ModelOptions model;
  std::string ids;
  std::string prompt;
  std::string out;
  std::string compare;
  bool all = false;
  double max_kl = 1e-3;
};

std::vector<Token> prompt_ids(const LogitsOptions& options, const LoadedModel& loaded) {
  if (options.ids.empty() == options.prompt.empty()) throw_bad_request("give either --ids or -p");
  if (!options.ids.empty()) return parse_ids(options.ids);
  return loaded.make_tokenizer(options.model)->encode(process_escapes(options.prompt));
}

/// Rows of n_vocab logits, one after another: the last position, or all.
std::vector<float> compute_logits(const LogitsOptions& options, LoadedModel& loaded, std::span<const Token> ids) {
  const std::size_t n_vocab = loaded.model.config().n_vocab;
  Forward forward(loaded.model, loaded.compute, {.chunk = static_cast<std::size_t>(options.model.chunk)});
  KvCache cache(loaded.kv_layout(), {.budget_bytes = loaded.kv_layout().bytes_for(ids.size(), forward.chunk()), .context = ids.size()});
  KvSequence sequence(cache);
  if (!options.all) {
    const auto last = forward.prefill(sequence, 0, ids);
    return {last.begin(), last.end()};
  }
  std::vector<float> rows(ids.size() * n_vocab);
  forward.prefill_all(sequence, 0, ids, [&](std::size_t row, std::span<const float> logits) {
    std::ranges::copy(logits, rows.begin() + static_cast<std::ptrdiff_t>(row * n_vocab));
  });
  return rows;
}

std::vector<float> read_logits(const std::string& path, std::size_t expected_values) {
  const File file(path);
  if (file.size_bytes() != expected_values * sizeof(float)) {
    throw_bad_request(fmt::format("{}: holds {} bytes, but these logits are {} values of 4 bytes; was it made with the same ids and --all?",
                                  path, file.size_bytes(), expected_values));
  }
  std::vector<float> values(expected_values);
  file.read_at(0, std::as_writable_bytes(std::span(values)));
  return values;
}

int compare(const LogitsOptions& options, std::span<const float> ours, std::size_t n_vocab) {
  const std::vector<float> theirs = read_logits(options.compare, ours.size());
  const LogitComparison result = compare_logits(ours, theirs, n_vocab);
  const bool close = result.mean_kl <= options.max_kl;
  write_answer(
      fmt::format("rows: {}\nmax_abs: {:.6g}\nmean_abs: {:.6g}\nrms: {:.6g}\nmean_kl: {:.6g}\nmax_kl: {:.6g}\nsame_argmax: {} of {}\n"
                  "last argmax: {} ({:.6f}) against {} ({:.6f})\n{}\n",
                  result.rows, result.max_abs, result.mean_abs, result.rms, result.mean_kl, result.max_kl, result.same_argmax, result.rows,
                  result.last_argmax, result.last_value, result.last_other_argmax, result.last_other_value, close ? "PASS" : "FAIL"));
  if (!close) fmt::print(stderr, "quench: the mean KL divergence is above --max-kl {}\n", options.max_kl);
  return close ? 0 : 1;
}

int run_logits(LogitsOptions options) {
  LoadedModel loaded(options.model.take_model(0), options.model);
  const std::vector<Token> ids = prompt_ids(options, loaded);
  const std::size_t n_vocab = loaded.model.config().n_vocab;
  const std::vector<float> rows = compute_logits(options, loaded, ids);
  if (!options.out.empty()) {
    FileWriter writer(options.out);
    writer.write(std::as_bytes(std::span(rows)));
    writer.commit();
    fmt::print(stderr, "quench: wrote {} rows of {} logits to {}\n", rows.size() / n_vocab, n_vocab, options.out);
  }
  if (!options.compare.empty()) return compare(options, rows, n_vocab);
  if (options.out.empty()) {
    const auto last = std::span(rows).last(n_vocab);
    for (const std::size_t token : top_tokens(last, 5)) write_answer(fmt::format("{} {:.6f}\n", token, last[token]));
  }
  return 0;
}

}  // namespace

void add_logits(CLI::App& app, Action& action) {
  auto options = std::make_shared<LogitsOptions>();
  CLI::App* command = app.add_subcommand("logits", "Logits of a prompt: print the best, write them, or compare with a file");
  command->footer(
      "Example:\n  quench logits model.gguf --ids '504 3575 282' --out a.f32 --all\n  quench logits model.gguf --ids '504 3575 282' "
      "--compare a.f32 --all");
  add_model_argument(*command, options->model, "words", "MODEL");
  add_compute_options(*command, options->model);
  add_tokenizer_options(*command, options->model);
  command->add_option("--ids", options->ids, "The prompt as token ids")->type_name("IDS");
  command->add_option("-p,--prompt", options->prompt, "The prompt as text, encoded with the model's BOS/EOS policy")->type_name("TEXT");
  command->add_option("--out", options->out, "Write little-endian f32 here")->type_name("FILE");
  command->add_option("--compare", options->compare, "Compare with such a file; exits 1 when they differ too much")->type_name("FILE");
  command->add_option("--max-kl", options->max_kl, "Largest mean KL divergence that passes --compare (0 asks for equal distributions)")
      ->type_name("F");
  command->add_flag("--all", options->all, "All positions instead of the last one");
  command->callback([options, &action] { action = [options] { return run_logits(*options); }; });
}

}  // namespace quench::cli
