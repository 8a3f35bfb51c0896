#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "base/error.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/interrupt.h"

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
    fmt::print(stderr, "quench: error: out of memory\n");
    return kMemoryExitCode;
  } catch (const std::exception& error) {
    fmt::print(stderr, "quench: error: {}\n", error.what());
    return kMemoryExitCode;
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Runs open-weight language models on CPUs, from a GGUF file to text."};
  app.name("quench");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("quench ") + QUENCH_VERSION);
  app.footer(
      "Answers go to stdout, everything else to stderr. Exit codes: 0 good, 1 failed check, 2 usage or bad request,\n"
      "3 bad or unsupported file, 4 memory or i/o, 130 interrupted. `quench COMMAND --help` shows options and an example.");
  Action action;
  add_chat(app, action);
  add_run(app, action);
  add_tokenize(app, action);
  add_detokenize(app, action);
  add_info(app, action);
  add_logits(app, action);
  add_verify(app, action);
  add_bench(app, action);
  add_synth(app, action);
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "Say more on stderr");
  app.fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const auto named = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (error.get_exit_code() != 0 && argc > 1 && argv[1][0] != '-' && app.get_subcommands(named).empty()) {
      fmt::print(stderr, "quench: error: there is no command '{}'; quench --help lists them\n", argv[1]);
      return kUsageExitCode;
    }
    const int code = app.exit(error, std::cout, std::cerr);
    return code == 0 ? 0 : kUsageExitCode;
  }
  if (verbose) set_log_level(LogLevel::kDebug);
  return run_guarded(action);
}

}  // namespace
}  // namespace quench::cli

int main(int argc, char** argv) {
  try {
    return quench::cli::run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    std::fputc('\n', stderr);
    return quench::cli::kMemoryExitCode;
  }
}
