#include "cli/model_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <limits>

#include "base/cpu.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/option_values.h"
#include "cli/terminal.h"

namespace quench::cli {
namespace {

constexpr int kMaxThreads = 1024;

Model load_with_progress(const gguf::Reader& reader, const ModelOptions& options, ThreadPool& pool) {
  ProgressBar bar("loading");
  LoadOptions load;
  load.window = static_cast<std::size_t>(options.window);
  load.expert_top_p = options.expert_top_p;
  load.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
  return Model::load(reader, load, pool);
}

/// The best ones that run here, or the ones that QUENCH_ISA forces. What the processor has and the system keeps back is worth a warning:
/// somebody can change that.
const KernelTable& chosen_kernels() {
  const char* forced = std::getenv("QUENCH_ISA");
  const bool by_choice = forced != nullptr && *forced != '\0';
  for (const Refusal& refusal : cpu_features().refusals) {
    const std::string sentence = cpu_features().describe(refusal);
    if (refusal.cause == RefusalCause::kSystem && !by_choice) {
      log_warning(sentence);
    } else {
      log_info(sentence);
    }
  }
  return kernels_for(selected_isa());
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The byte that the escape at `text[at]` (just past the backslash) stands for, and how many characters it takes; 0 = no escape.
struct Escape {
  char byte = 0;
  std::size_t length = 0;
};

Escape escape_at(const std::string& text, std::size_t at) noexcept {
  switch (text[at]) {
    case 'n': return {'\n', 1};
    case 't': return {'\t', 1};
    case 'r': return {'\r', 1};
    case '\\': return {'\\', 1};
    case '"': return {'"', 1};
    case '\'': return {'\'', 1};
    case 'x': break;
    default: return {};
  }
  if (at + 2 >= text.size()) return {};
  const int high = hex_digit(text[at + 1]);
  const int low = hex_digit(text[at + 2]);
  if (high < 0 || low < 0) return {};
  return {static_cast<char>(high * 16 + low), 3};
}

/// Before the weights are read rather than after.
void check_cache_fits(const gguf::Reader& reader, CacheType type) { (void)make_kv_layout(read_config(reader.metadata()), type); }

}  // namespace

void require_weights(const gguf::Reader& reader) {
  if (!reader.tensors().empty()) return;
  throw_unsupported(reader.path().string() + ": holds a vocabulary and no weights; it serves tokenize, detokenize and info only");
}

std::string ModelOptions::take_model(std::size_t most_words) {
  if (model.empty()) {
    if (words.empty()) throw_bad_request("no model: give the path of a GGUF file as the first argument, or with -m");
    if (words.front().empty()) throw_bad_request("the model's path, the first argument, is empty");
    model = words.front();
    words.erase(words.begin());
  }
  if (words.size() > most_words) {
    throw_bad_request(fmt::format("unexpected argument '{}'; quote a text that holds spaces", words[most_words]));
  }
  return model;
}

CacheType ModelOptions::parsed_cache_type() const {
  const auto type = cache_type_from_name(cache_type);
  if (!type) throw_bad_request("--cache-type " + cache_type + ": there are f16 and q8_0");
  return *type;
}

void add_model_argument(CLI::App& command, ModelOptions& options, const std::string& usage, const std::string& words_help) {
  command.add_option("-m,--model", options.model, "GGUF file; then the first positional is no model")
      ->check(some_path())
      ->type_name("FILE");
  command.add_option("words", options.words, words_help)->option_text(usage)->expected(0, -1);
}

void add_tokenizer_options(CLI::App& command, ModelOptions& options) {
  command.add_flag("--strict", options.tokenizer.strict, "An unknown pre-tokenizer is an error instead of a warning");
  command.add_option("--pre", options.tokenizer.pre_override, "Pre-tokenizer to use instead of the file's")->type_name("NAME");
}

void add_compute_options(CLI::App& command, ModelOptions& options) {
  command.add_option("-t,--threads", options.threads, "Threads; 0 = physical cores within affinity mask and cgroup quota")
      ->check(whole_number(0, kMaxThreads))
      ->type_name("N");
  command.add_option("-c,--ctx,--ctx-size", options.context, "Context in tokens; 0 = what the file was trained for, bounded by memory")
      ->check(whole_number(0, kMostPositions))
      ->type_name("N");
  command.add_option("--cache-mib", options.cache_mib, "Budget of the KV cache; 0 = half of the memory that is free after the weights")
      ->check(whole_number(0, 1 << 30))
      ->type_name("MIB");
  command.add_option("-b,--chunk,--ubatch-size", options.chunk, "Prompt tokens in one pass")->check(whole_number(1, 4096))->type_name("N");
  add_model_change_options(command, options);
}

void add_model_change_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--window", options.window, "Sliding window of N positions in every layer; 0 = as the file says")
      ->check(whole_number(0, kMostPositions))
      ->type_name("N");
  command
      .add_option(
          "--moe-expert-top-p", options.expert_top_p,
          "Of each token's experts keep the best that together have this share of its weight; below 1 is faster and changes answers")
      ->check(number_between(0, 1))
      ->type_name("P");
  command.add_option("--cache-type", options.cache_type, "Type of the KV cache: f16, or q8_0 (holds 1.88 times as many tokens)")
      ->type_name("TYPE");
}

void add_engine_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option("--draft,--model-draft", options.draft_model,
                  "A smaller model of the same vocabulary, whose guesses are checked in one pass; the answer is the same")
      ->check(some_path())
      ->type_name("FILE");
  command
      .add_option("--kv-save", options.saved_cache,
                  "Start with the computed prefixes that this file holds, and add to it what is computed; made when it is missing")
      ->type_name("FILE");
  command.add_option("--kv-save-mib", options.saved_cache_mib, "Largest size of that file; what was used last stays")
      ->check(whole_number(1, 1 << 30))
      ->type_name("MIB");
}

LoadedModel::LoadedModel(const std::string& path, const ModelOptions& options)
    : reader(path),
      pool(options.threads),
      compute{chosen_kernels(), pool},
      cache_type(options.parsed_cache_type()),
      model(naming_file(path, [&] {
        require_weights(reader);
        check_cache_fits(reader, cache_type);
        const double start = now_seconds();
        Model loaded = load_with_progress(reader, options, pool);
        load_seconds = now_seconds() - start;
        return loaded;
      })) {}

std::unique_ptr<Tokenizer> LoadedModel::make_tokenizer(const ModelOptions& options) const {
  return naming_file(reader.path().string(), [&] { return Tokenizer::from_metadata(reader.metadata(), options.tokenizer); });
}

std::vector<Token> parse_ids(const std::string& text) {
  constexpr std::string_view kSeparators = " ,\t\r\n";
  std::vector<Token> ids;
  std::size_t at = text.find_first_not_of(kSeparators);
  while (at != std::string::npos) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    Token id = 0;
    const char* const stop = text.data() + end;
    const auto [rest, problem] = std::from_chars(text.data() + at, stop, id);
    if (problem != std::errc{} || rest != stop) throw_bad_request(fmt::format("'{}' is no token id", text.substr(at, end - at)));
    ids.push_back(id);
    at = text.find_first_not_of(kSeparators, end);
  }
  return ids;
}

std::string process_escapes(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      const Escape escape = escape_at(text, at + 1);
      if (escape.length > 0) {
        out.push_back(escape.byte);
        at += escape.length;
        continue;
      }
    }
    out.push_back(text[at]);
  }
  return out;
}

}  // namespace quench::cli
