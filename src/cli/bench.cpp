#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/terminal.h"

namespace quench::cli {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::vector<std::size_t> prompt = {512};
  std::vector<std::size_t> generate = {32};
  std::vector<std::size_t> depths = {0};
  int repetitions = 3;
  bool json = false;
};

/// One line of the table: rates of the repetitions.
struct BenchResult {
  std::string test;
  std::vector<double> tokens_per_second;
  double bytes_per_token = 0;  ///< read from memory for each token, where that is the limit; 0 = not shown

  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double rate : tokens_per_second) sum += rate;
    return sum / static_cast<double>(tokens_per_second.size());
  }
  /// Population standard deviation.
  [[nodiscard]] double spread() const {
    double squares = 0;
    for (const double rate : tokens_per_second) squares += (rate - mean()) * (rate - mean());
    return std::sqrt(squares / static_cast<double>(tokens_per_second.size()));
  }
};

class Bench {
 public:
  Bench(const BenchOptions& options, LoadedModel& loaded)
      : options_(options),
        loaded_(loaded),
        forward_(loaded.model, loaded.compute, {.chunk = static_cast<std::size_t>(options.model.chunk)}),
        positions_(most_positions(options)),
        cache_(loaded.kv_layout(),
               {.budget_bytes = loaded.kv_layout().bytes_for(positions_, forward_.chunk()), .context = positions_}),
        sequence_(cache_) {
    const std::size_t n_vocab = loaded.model.config().n_vocab;
    for (std::size_t i = 0; i < positions_; ++i) tokens_.push_back(static_cast<Token>((1000 + i * 7919) % n_vocab));
  }

  std::vector<BenchResult> run() {
    fill(std::min<std::size_t>(positions_, 16));  // touches weights and code once
    std::vector<BenchResult> results;
    for (const std::size_t depth : options_.depths) {
      for (const std::size_t n : options_.prompt) {
        if (n > 0) results.push_back(measure("pp", n, depth));
      }
      for (const std::size_t n : options_.generate) {
        if (n > 0) results.push_back(measure("tg", n, depth));
      }
    }
    return results;
  }

 private:
  static std::size_t most_positions(const BenchOptions& options) {
    std::size_t most = 16;
    for (const std::size_t depth : options.depths) {
      for (const std::size_t n : options.prompt) most = std::max(most, depth + n);
      for (const std::size_t n : options.generate) most = std::max(most, depth + n);
    }
    return most;
  }

  void fill(std::size_t depth) {
    sequence_.truncate(0);
    if (depth > 0) (void)forward_.prefill(sequence_, 0, std::span(tokens_).first(depth));
  }

  BenchResult measure(const std::string& kind, std::size_t n, std::size_t depth) {
    BenchResult result;
    result.test = depth > 0 ? fmt::format("{}{}@d{}", kind, n, depth) : fmt::format("{}{}", kind, n);
    const auto tokens = std::span(tokens_).subspan(depth, n);
    for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
      fill(depth);
      const double start = now_seconds();
      if (kind == "pp") {
        (void)forward_.prefill(sequence_, depth, tokens);
      } else {
        for (std::size_t i = 0; i < n; ++i) (void)forward_.decode(sequence_, depth + i, tokens[i]);
      }
      result.tokens_per_second.push_back(static_cast<double>(n) / (now_seconds() - start));
    }
    if (kind == "tg") {
      const double mean_depth = static_cast<double>(depth) + static_cast<double>(n) / 2;
      result.bytes_per_token = static_cast<double>(weight_bytes_read_per_token()) +
                               mean_depth * static_cast<double>(loaded_.kv_layout().bytes_per_position());
    }
    return result;
  }

  /// Every weight but an untied embedding, of which only one row is read.
  [[nodiscard]] std::uint64_t weight_bytes_read_per_token() const noexcept {
    const Weights& weights = loaded_.model.weights();
    return weights.size_bytes() - (weights.tied() ? 0 : weights.embedding.matrix().size_bytes());
  }

  const BenchOptions& options_;
  LoadedModel& loaded_;
  Forward forward_;
  std::size_t positions_;
  KvCache cache_;
  KvSequence sequence_;
  std::vector<Token> tokens_;
};

void print_json(const std::vector<BenchResult>& results, const LoadedModel& loaded) {
  nlohmann::ordered_json json;
  json["model"] = loaded.reader.path().filename().string();
  json["processor"] = cpu_features().processor;
  json["isa"] = loaded.compute.kernels.name;
  json["threads"] = loaded.pool.thread_count();
  json["load_seconds"] = loaded.load_seconds;
  json["weight_bytes"] = loaded.model.weight_bytes();
  json["peak_resident_bytes"] = peak_resident_bytes();
  json["results"] = nlohmann::ordered_json::array();
  for (const BenchResult& result : results) {
    nlohmann::ordered_json row;
    row["test"] = result.test;
    row["tokens_per_second"] = result.mean();
    row["stddev"] = result.spread();
    row["repetitions"] = result.tokens_per_second;
    if (result.bytes_per_token > 0) row["gigabytes_per_second"] = result.mean() * result.bytes_per_token / 1e9;
    json["results"].push_back(row);
  }
  write_answer(json.dump(2) + "\n");
}

void print_table(const std::vector<BenchResult>& results, const LoadedModel& loaded) {
  std::string text = fmt::format("{}: {} on {}, {} threads, weights {}, loaded in {:.2f} s\n\n{:<16} {:>14} {:>10} {:>8}\n",
                                 loaded.reader.path().filename().string(), loaded.compute.kernels.name, cpu_features().processor,
                                 loaded.pool.thread_count(), human_bytes(loaded.model.weight_bytes()), loaded.load_seconds, "test",
                                 "tokens/s", "+-", "GB/s");
  for (const BenchResult& result : results) {
    const std::string rate = result.bytes_per_token > 0 ? fmt::format("{:.1f}", result.mean() * result.bytes_per_token / 1e9) : "";
    text += fmt::format("{:<16} {:>14.2f} {:>10.2f} {:>8}\n", result.test, result.mean(), result.spread(), rate);
  }
  text += fmt::format("\npeak resident memory {}\n", human_bytes(peak_resident_bytes()));
  write_answer(text);
}

int run_bench(BenchOptions options) {
  LoadedModel loaded(options.model.take_model(0), options.model);
  const std::vector<BenchResult> results = Bench(options, loaded).run();
  if (options.json) {
    print_json(results, loaded);
  } else {
    print_table(results, loaded);
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode");
  command->footer("Example:\n  quench bench model.gguf -p 512 -n 32 -d 0,4096 -t 2 -r 3 --json");
  add_model_argument(*command, options->model, "words", "MODEL");
  add_compute_options(*command, options->model);
  command->add_option("-p,--n-prompt", options->prompt, "Prompt lengths, 0 = none")->delimiter(',')->type_name("N,..");
  command->add_option("-n,--n-gen", options->generate, "Tokens to generate, 0 = none")->delimiter(',')->type_name("N,..");
  command->add_option("-d,--n-depth", options->depths, "Tokens in the cache before")->delimiter(',')->type_name("N,..");
  command->add_option("-r,--repetitions", options->repetitions, "Timed repetitions")->check(CLI::Range(1, 1000))->type_name("N");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &action] { action = [options] { return run_bench(*options); }; });
}

}  // namespace quench::cli
