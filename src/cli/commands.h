#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace quench::cli {

/// What the parsed command line asks for; returns the exit code.
using Action = std::function<int()>;

/// Each adds its subcommand to `app`; parsing that subcommand sets `action`.
void add_chat(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_batch(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_detokenize(CLI::App& app, Action& action);
void add_info(CLI::App& app, Action& action);
void add_logits(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_bench_engine(CLI::App& app, Action& action);
void add_synth(CLI::App& app, Action& action);

}  // namespace quench::cli
