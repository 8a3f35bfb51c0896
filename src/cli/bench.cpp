#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <span>

#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/bench_options.h"
#include "cli/bench_paced.h"
#include "cli/bench_profile.h"
#include "cli/bench_report.h"
#include "cli/bench_runner.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/terminal.h"

namespace quench::cli {
namespace {

/// A sweep over threads, chunks and tests.
class Bench {
 public:
  Bench(const BenchOptions& options, const LoadedModel& loaded)
      : options_(options), loaded_(loaded), layout_(loaded.kv_layout()), tests_(bench_tests(options)) {
    report_.model = loaded.reader.path().filename().string();
    report_.processor = cpu_features().processor;
    report_.isa = loaded.compute.kernels.name;
    report_.load_seconds = loaded.load_seconds;
    report_.weight_bytes = loaded.model.weight_bytes();
    report_.last_level_cache_bytes = last_level_cache_bytes();
  }

  BenchReport run() {
    for (const int threads : options_.threads) {
      ThreadPool pool(threads);
      run_threads({loaded_.compute.kernels, pool, options_.profile ? &profile_ : nullptr});
      if (options_.profile) report_.join_seconds = std::max(report_.join_seconds, measure_join_seconds(pool));
    }
    note_peak();
    return report_;
  }

  /// One repetition of every test for each request, with the first number of threads and the first chunk.
  void serve() {
    ThreadPool pool(options_.threads.front());
    const Compute compute{loaded_.compute.kernels, pool};
    start_probe(compute);
    BenchRunner runner(loaded_.model, layout_, compute, options_.chunks.front(), tests_);
    report_.cache_bytes = runner.cache_bytes();
    const PacedSession session{.probe = [&] { return roofline_json(probe_ ? probe_->pass(compute) : Roofline{}).dump(); },
                               .round = [&] { return round(compute, runner); },
                               .write = [](const std::string& text) { write_answer(text); }};
    session.serve(std::cin);
  }

 private:
  void run_threads(const Compute& compute) {
    start_probe(compute);
    const std::size_t first_row = report_.rows.size();
    for (const std::size_t chunk : options_.chunks) {
      BenchRunner runner(loaded_.model, layout_, compute, chunk, tests_);
      report_.cache_bytes = std::max(report_.cache_bytes, runner.cache_bytes());
      for (const BenchTest& test : tests_) {
        report_.rows.push_back(measure(compute, runner, test, options_.repetitions));
        // The machine may have been busy when the run began: the roofline goes on being looked for.
        if (probe_) (void)probe_->pass(compute);
      }
    }
    if (!probe_) return;
    for (BenchRow& row : std::span(report_.rows).subspan(first_row)) row.roofline = probe_->best();
  }

  BenchRow measure(const Compute& compute, BenchRunner& runner, const BenchTest& test, int repetitions) {
    BenchRow row{.test = test, .threads = compute.pool.thread_count(), .chunk = runner.chunk(), .cost = {}, .seconds = {}, .roofline = {}};
    row.cost = test.kind == BenchTest::Kind::kPrefill ? prefill_cost(loaded_.model, layout_, test.depth, test.tokens, runner.chunk())
                                                      : decode_cost(loaded_.model, layout_, test.depth, test.tokens, test.sequences);
    profile_ = Profile();
    for (int repetition = 0; repetition < repetitions; ++repetition) row.seconds.add(runner.run(test));
    if (compute.profile != nullptr) row.profile = profile_.entries();
    return row;
  }

  std::string round(const Compute& compute, BenchRunner& runner) {
    report_.rows.clear();
    for (const BenchTest& test : tests_) {
      report_.rows.push_back(measure(compute, runner, test, 1));
      if (probe_) report_.rows.back().roofline = probe_->best();
    }
    note_peak();
    return bench_json(report_).dump();
  }

  /// The buffer is made once; what the process held before is noted first.
  void start_probe(const Compute& compute) {
    const std::uint64_t bytes =
        options_.probe_mib ? *options_.probe_mib << 20 : read_probe_bytes(report_.last_level_cache_bytes, available_memory_bytes());
    if (bytes == 0) return;
    if (!probe_) {
      report_.peak_resident_bytes = peak_resident_bytes();
      probe_.emplace(bytes, compute.pool);
      report_.probe_bytes = probe_->size_bytes();
    }
    probe_->restart(compute);
  }

  void note_peak() {
    const std::uint64_t peak = peak_resident_bytes();
    const std::uint64_t without_probe = peak - std::min(peak, report_.probe_bytes);
    report_.peak_resident_bytes = std::max(report_.peak_resident_bytes, without_probe);
  }

  const BenchOptions& options_;
  const LoadedModel& loaded_;
  KvLayout layout_;
  std::vector<BenchTest> tests_;
  std::optional<RooflineProbe> probe_;
  Profile profile_;
  BenchReport report_;
};

int print_report(const BenchReport& report, BenchOutput output) {
  switch (output) {
    case BenchOutput::kTable: write_answer(bench_table(report)); break;
    case BenchOutput::kJson: write_answer(bench_json(report).dump(2) + "\n"); break;
    case BenchOutput::kCsv: write_answer(bench_csv(report)); break;
  }
  for (const std::string& violation : report.violations()) fmt::print(stderr, "quench: error: invalid run: {}\n", violation);
  return report.violations().empty() ? 0 : exit_code(ErrorKind::kCheckFailed);
}

int run_bench(BenchOptions options) {
  const std::string path = options.model.take_model(0);
  (void)bench_tests(options);  // nothing to measure is said before a model is loaded
  options.model.threads = std::ranges::count(options.threads, 0) > 0 ? 0 : std::ranges::max(options.threads);  // for loading
  const LoadedModel loaded(path, options.model);
  Bench bench(options, loaded);
  if (options.paced) {
    bench.serve();
    return 0;
  }
  return print_report(bench.run(), options.output);
}

void add_sweep_options(CLI::App& command, BenchOptions& options) {
  constexpr std::uint64_t kMostThreads = 1024;
  constexpr std::uint64_t kMostChunk = 4096;
  const auto list = [&command](const char* names, auto& values, const char* help, const CLI::Validator& range) {
    command.add_option(names, values, help)->delimiter(',')->check(range)->type_name("N,..");
  };
  list("-p,--n-prompt", options.prompt, "Prompt lengths, 0 = none", whole_number(0, kMostPositions));
  list("-n,--n-gen", options.generate, "Tokens to generate, 0 = none", whole_number(0, kMostPositions));
  list("-d,--n-depth", options.depths, "Tokens in the cache before", whole_number(0, kMostPositions));
  list("-s,--sequences", options.sequences, "Sequences that generate side by side, in one pass over the weights", whole_number(1, 1024));
  list("-t,--threads", options.threads, "Threads; 0 = physical cores within affinity mask and cgroup quota", whole_number(0, kMostThreads));
  list("-b,--chunk,--ubatch-size", options.chunks, "Prompt tokens in one pass", whole_number(1, kMostChunk));
  command.add_option("-r,--repetitions", options.repetitions, "Timed repetitions; medians are shown")
      ->check(whole_number(1, 1000))
      ->type_name("N");
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode beside what the machine can do");
  command->footer(
      "Every number of threads is measured with every chunk, depth and length. The columns of per cent are of what a probe in the same\n"
      "run reads from memory and computes in registers; a rate above the probe's exits 1 (docs/benchmarking.md).\n"
      "Example:\n  quench bench model.gguf -p 512 -n 32 -d 0,4096 -t 1,2 -r 5 --csv");
  add_model_argument(*command, options->model, "MODEL", "GGUF file");
  add_sweep_options(*command, *options);
  add_model_change_options(*command, options->model);
  command
      ->add_option("--probe", options->probe_mib,
                   "MiB that the roofline's probe reads, 0 = no roofline; default: 1024, or more for large caches")
      ->check(whole_number(0, 1 << 20))
      ->type_name("MIB");
  CLI::Option* profile =
      command->add_flag("--profile", options->profile, "Show the time of each operation; each decoded token is sampled too");
  CLI::Option* json = command->add_flag_callback("--json", [options] { options->output = BenchOutput::kJson; }, "Print JSON");
  command->add_flag_callback("--csv", [options] { options->output = BenchOutput::kCsv; }, "Print CSV")->excludes(json);
  command
      ->add_flag("--paced", options->paced,
                 "Measure on request: each line 'round' or 'probe' on standard input is answered with a line of JSON")
      ->excludes(profile);
  command->callback([options, &action] { action = [options] { return run_bench(*options); }; });
}

}  // namespace quench::cli
