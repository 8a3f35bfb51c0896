#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/model_options.h"
#include "cli/option_values.h"
#include "cli/terminal.h"
#include "engine/logit_comparison.h"

namespace quench::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "logit files are little-endian f32");

struct LogitsOptions {
  ModelOptions model;
  std::optional<std::string> ids;
  std::optional<std::string> prompt;
  std::string out;
  std::string compare;
  bool all = false;
  std::optional<double> max_kl;  ///< nothing: the same bits
};

void check_options(const LogitsOptions& options) {
  if (options.ids.has_value() == options.prompt.has_value()) throw_bad_request("give the prompt with exactly one of -p TEXT or --ids IDS");
  if (options.max_kl && options.compare.empty()) throw_bad_request("--max-kl is the limit of --compare, which is missing");
  std::error_code missing;  // a file that is not there yet is another one
  if (!options.compare.empty() && std::filesystem::equivalent(options.out, options.compare, missing)) {
    throw_bad_request(fmt::format("--out {} and --compare {} are the same file", options.out, options.compare));
  }
}

std::vector<Token> prompt_ids(const LogitsOptions& options, const LoadedModel& loaded) {
  std::vector<Token> ids =
      options.ids ? parse_ids(*options.ids) : loaded.make_tokenizer(options.model)->encode(process_escapes(*options.prompt));
  if (ids.empty()) throw_bad_request("the prompt is empty: there are no logits");
  return ids;
}

/// Rows of n_vocab logits, one after another: the last position, or all.
std::vector<float> compute_logits(const LogitsOptions& options, LoadedModel& loaded, std::span<const Token> ids) {
  const std::size_t n_vocab = loaded.model.config().n_vocab;
  Forward forward(loaded.model, loaded.compute, {.chunk = static_cast<std::size_t>(options.model.chunk)});
  check_fits(plan_for(loaded, options.model, forward), ids.size());
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

std::vector<float> read_logits(const std::string& path, std::size_t expected_values, std::size_t n_vocab) {
  const File file(path);
  if (file.size_bytes() != expected_values * sizeof(float)) {
    throw_bad_request(fmt::format("{}: holds {} bytes, but these logits are {} values of 4 bytes; was it made with the same ids and --all?",
                                  path, file.size_bytes(), expected_values));
  }
  std::vector<float> values(expected_values);
  file.read_at(0, std::as_writable_bytes(std::span(values)));
  const auto strange = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  if (strange != values.end()) {
    const auto at = static_cast<std::size_t>(strange - values.begin());
    throw_bad_file(fmt::format("{}: the logit of token {} in row {} is {}", path, at % n_vocab, at / n_vocab, *strange));
  }
  return values;
}

/// Whether the comparison passes, and the sentence that says so.
struct Verdict {
  bool passed;
  std::string reason;
};

Verdict judge_kl(const LogitComparison& result, double max_kl) {
  const bool close = result.mean_kl <= max_kl;
  return {close, fmt::format("the mean KL divergence is {} --max-kl {}", close ? "within" : "above", max_kl)};
}

Verdict judge_bits(std::span<const float> ours, std::span<const float> theirs, std::size_t n_vocab) {
  const auto same_bits = [](float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); };
  std::size_t different = 0;
  std::size_t first = 0;
  for (std::size_t i = ours.size(); i-- > 0;) {
    if (same_bits(ours[i], theirs[i])) continue;
    ++different;
    first = i;
  }
  if (different == 0) return {true, fmt::format("all {} values have the same bits", ours.size())};
  return {false, fmt::format("{} of {} values differ, first that of token {} in row {}: {} against {}; --max-kl F allows for differences",
                             different, ours.size(), first % n_vocab, first / n_vocab, ours[first], theirs[first])};
}

bool compare(const LogitsOptions& options, std::span<const float> ours, std::span<const float> theirs, std::size_t n_vocab) {
  const LogitComparison result = compare_logits(ours, theirs, n_vocab);
  const Verdict verdict = options.max_kl ? judge_kl(result, *options.max_kl) : judge_bits(ours, theirs, n_vocab);
  write_answer(
      fmt::format("rows: {}\nmax_abs: {:.6g}\nmean_abs: {:.6g}\nrms: {:.6g}\nmean_kl: {:.6g}\nmax_kl: {:.6g}\nsame_argmax: {} of {}\n"
                  "last argmax: {} ({:.6f}) against {} ({:.6f})\n{}: {}\n",
                  result.rows, result.max_abs, result.mean_abs, result.rms, result.mean_kl, result.max_kl, result.same_argmax, result.rows,
                  result.last_argmax, result.last_value, result.last_other_argmax, result.last_other_value,
                  verdict.passed ? "PASS" : "FAIL", verdict.reason));
  return verdict.passed;
}

void write_rows(const std::string& path, std::span<const float> rows, std::size_t n_vocab) {
  FileWriter writer(path);
  writer.write(std::as_bytes(rows));
  writer.commit();
  fmt::print(stderr, "quench: wrote {} rows of {} logits to {}\n", rows.size() / n_vocab, n_vocab, path == "-" ? "standard output" : path);
}

int run_logits(LogitsOptions options) {
  check_options(options);
  LoadedModel loaded(options.model.take_model(0), options.model);
  const std::vector<Token> ids = prompt_ids(options, loaded);
  const std::size_t n_vocab = loaded.model.config().n_vocab;
  std::vector<float> theirs;  // read before anything is written or computed
  if (!options.compare.empty()) theirs = read_logits(options.compare, (options.all ? ids.size() : 1) * n_vocab, n_vocab);
  const std::vector<float> rows = naming_file(loaded.reader.path().string(), [&] { return compute_logits(options, loaded, ids); });
  const bool passed = options.compare.empty() || compare(options, rows, theirs, n_vocab);
  if (!options.out.empty()) write_rows(options.out, rows, n_vocab);
  if (options.compare.empty() && options.out.empty()) {
    const auto last = std::span(rows).last(n_vocab);
    for (const std::size_t token : top_tokens(last, 5)) write_answer(fmt::format("{} {:.6f}\n", token, last[token]));
  }
  return passed ? 0 : exit_code(ErrorKind::kCheckFailed);
}

}  // namespace

void add_logits(CLI::App& app, Action& action) {
  auto options = std::make_shared<LogitsOptions>();
  CLI::App* command = app.add_subcommand("logits", "Logits of a prompt: print the best, write them, or compare with a file");
  command->footer(
      "Example:\n  quench logits model.gguf --ids '504 3575 282' --out a.f32 --all\n  quench logits model.gguf --ids '504 3575 282' "
      "--compare a.f32 --all\n"
      "Special tokens in -p are recognised, as in no message of chat.");
  add_model_argument(*command, options->model, "MODEL", "GGUF file");
  add_compute_options(*command, options->model);
  add_tokenizer_options(*command, options->model);
  command->add_option("--ids", options->ids, "The prompt as token ids")->type_name("IDS");
  command->add_option("-p,--prompt", options->prompt, "The prompt as text, encoded with the model's BOS/EOS policy")->type_name("TEXT");
  command->add_option("--out", options->out, "Write little-endian f32 here, - for standard output")->check(some_path())->type_name("FILE");
  command->add_option("--compare", options->compare, "Compare with such a file; exits 1 when a bit differs, or as --max-kl says")
      ->check(some_path())
      ->type_name("FILE");
  command
      ->add_option("--max-kl", options->max_kl,
                   "--compare passes up to this mean KL divergence in nats instead; it is blind to a constant added to all logits of a row")
      ->check(number_between(0, std::numeric_limits<double>::max()))
      ->type_name("F");
  command->add_flag("--all", options->all, "All positions instead of the last one");
  command->callback([options, &action] { action = [options] { return run_logits(*options); }; });
}

}  // namespace quench::cli
