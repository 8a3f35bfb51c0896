#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/help_format.h"
#include "cli/interrupt.h"
#include "cli/standard_streams.h"
#include "cli/terminal.h"

namespace quench::cli {
namespace {

constexpr int kUsageExitCode = 2;
constexpr int kMemoryExitCode = 4;

int run_guarded(const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    fmt::print(stderr, "quench: error: {}\n", error.what());
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "quench: error: out of memory: {} are in use, {} free\n", human_bytes(resident_bytes()),
               human_bytes(available_memory_bytes()));
    return kMemoryExitCode;
  } catch (const std::exception& error) {
    fmt::print(stderr, "quench: error: {}\n", error.what());
    return kMemoryExitCode;
  }
}

/// Help and version are answers too; their stream must not hide that nobody got them.
int end_parsing(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream answer;
  const int code = app.exit(error, answer, std::cerr);
  if (code != 0) return kUsageExitCode;
  return run_guarded([&] {
    write_answer(answer.str());
    return 0;
  });
}

int run(int argc, char** argv) {
  CLI::App app{"Runs open-weight language models on CPUs, from a GGUF file to text."};
  app.name("quench");
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormat>());
  // What is given twice: the last one counts, so that a script's options can be overridden. Commands inherit both.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", std::string("quench ") + QUENCH_VERSION);
  app.footer(
      "Answers go to stdout, everything else to stderr. Exit codes: 0 good, 1 failed check, 2 usage or bad request,\n"
      "3 bad or unsupported file, 4 memory or i/o, 130 interrupted. `quench COMMAND --help` shows options and an example.");
  Action action;
  add_chat(app, action);
  add_run(app, action);
  add_batch(app, action);
  add_tokenize(app, action);
  add_detokenize(app, action);
  add_info(app, action);
  add_logits(app, action);
  add_verify(app, action);
  add_bench(app, action);
  add_bench_engine(app, action);
  add_synth(app, action);
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "Say more on stderr");
  for (CLI::App* command : app.get_subcommands({})) {
    command->add_flag("-v,--verbose", verbose, "Say more on stderr");
    hide_empty_defaults(*command);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const auto named = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (error.get_exit_code() != 0 && argc > 1 && argv[1][0] != '-' && app.get_subcommands(named).empty()) {
      fmt::print(stderr, "quench: error: there is no command '{}'; quench --help lists them\n", argv[1]);
      return kUsageExitCode;
    }
    return end_parsing(app, error);
  }
  if (verbose) set_log_level(LogLevel::kDebug);
  return run_guarded(action);
}

}  // namespace
}  // namespace quench::cli

int main(int argc, char** argv) {
  quench::cli::open_missing_standard_streams();
  quench::cli::handle_ending_signals();
  try {
    return quench::cli::run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    std::fputc('\n', stderr);
    return quench::cli::kMemoryExitCode;
  }
}
