#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <system_error>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/terminal.h"
#include "model/synth.h"

namespace quench::cli {
namespace {

struct SynthOptions {
  SynthSpec spec;
  std::string out;
  std::string vocabulary;
  bool untied = false;
  bool tied = false;
  bool list = false;
};

template <typename Names>
std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

int list_names() {
  std::string text;
  for (const std::string_view family : synth_families()) text += fmt::format("{}: {}\n", family, joined(synth_sizes(family)));
  write_answer(text + "formats: " + joined(synth_formats()) + "\n");
  return 0;
}

int run_synth(SynthOptions options) {
  if (options.list) return list_names();
  if (options.out.empty()) throw_bad_request("synth: no output file: give its path as the first argument");
  if (!options.vocabulary.empty()) options.spec.vocabulary = options.vocabulary;
  if (options.untied || options.tied) options.spec.untied = options.untied;
  write_synthetic_model(options.spec, options.out);
  std::error_code no_file;  // standard output, a fifo
  const std::uintmax_t bytes = std::filesystem::file_size(options.out, no_file);
  fmt::print(stderr, "quench: wrote {}, {} {} in {}{}\n", options.out == "-" ? "standard output" : options.out, options.spec.family,
             options.spec.size, options.spec.format, no_file ? "" : ", " + human_bytes(bytes));
  return 0;
}

}  // namespace

void add_synth(CLI::App& app, Action& action) {
  auto options = std::make_shared<SynthOptions>();
  CLI::App* command = app.add_subcommand("synth", "Write a model with random weights, for tests and benchmarks");
  command->footer("Example:\n  quench synth qwen3.gguf --family qwen3 --size 0.6b --format q4_K_M --seed 1");
  command->add_option("out", options->out, "File to write, - for standard output")->option_text("OUT");
  command->add_option("--family", options->spec.family, "qwen3, qwen2, qwen3moe, qwen2moe, llama, gemma3")->type_name("NAME");
  command->add_option("--size", options->spec.size, "tiny, or a real model's size; --list shows all")->type_name("NAME");
  command->add_option("--format", options->spec.format, "Weight format or one of llama.cpp's mixes, in any case")->type_name("NAME");
  command->add_option("--seed", options->spec.seed, "The same seed gives the same file")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N");
  command->add_option("--vocab", options->vocabulary, "GGUF file whose tokenizer is copied; else one is generated")->type_name("FILE");
  command->add_option("--vocab-size", options->spec.vocabulary_size, "Size of a generated vocabulary")
      ->check(whole_number(1, kMostPositions))
      ->type_name("N");
  command->add_option("--context", options->spec.context_length, "Trained context to state")
      ->check(whole_number(1, kMostPositions))
      ->type_name("N");
  command->add_option("--rope-scaling", options->spec.rope_scaling, "none, linear, yarn, llama3; default: as the real model")
      ->type_name("NAME");
  command->add_option("--rope-factor", options->spec.rope_factor, "Factor of that scaling")->type_name("F");
  CLI::Option* untied = command->add_flag("--untied", options->untied, "An output matrix of its own; default: as the real model");
  command->add_flag("--tied", options->tied, "The embedding is the output matrix")->excludes(untied);
  command->add_flag("--list", options->list, "List families, sizes and formats");
  command->callback([options, &action] { action = [options] { return run_synth(*options); }; });
}

}  // namespace quench::cli
