#include "cli/generation_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/option_values.h"

namespace quench::cli {

void GenerationFlags::add_to(CLI::App& command, const std::string& most_tokens_help) {
  command.add_option("-n,--predict,--n-predict", max_tokens, most_tokens_help)->check(whole_number(-1, kMostPositions))->type_name("N");
  command.add_option("--stop,--reverse-prompt", stop_texts, "Stop before this text (repeatable)")->type_name("TEXT");
  command.add_option("--stop-id", stop_ids, "Stop at this token (repeatable)")
      ->check(whole_number(0, std::numeric_limits<Token>::max()))
      ->type_name("ID");
  command.add_flag("--ignore-eos", ignore_end, "Go on past the end-of-text tokens");
  command
      .add_option("--spec", speculation,
                  "Speculation: guess tokens that repeat earlier text, and check several in one pass; the answer is the same")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  command.add_option("--spec-ref", reference_files, "A text that the answer may quote: speculation guesses from it, too (repeatable)")
      ->check(some_path())
      ->type_name("FILE");
  command.add_flag("--stats", stats, "Say on stderr how many tokens, and how fast");
}

GenerationOptions GenerationFlags::generation_options(const Tokenizer& tokenizer, std::size_t default_tokens) const {
  if (max_tokens && *max_tokens == 0) throw_bad_request("-n 0 generates nothing; give a positive number, or -1 for no limit");
  for (const Token id : stop_ids) {
    if (id < tokenizer.vocab_size()) continue;
    throw_bad_request(fmt::format("--stop-id {} is outside the vocabulary of {}", id, tokenizer.vocab_size()));
  }
  GenerationOptions options;
  options.max_new_tokens = max_tokens_given() ? static_cast<std::size_t>(*max_tokens) : default_tokens;
  if (!ignore_end) options.stop_ids = tokenizer.end_tokens();
  options.stop_ids.insert(options.stop_ids.end(), stop_ids.begin(), stop_ids.end());
  options.stop_texts = stop_texts;
  options.speculate = speculation == "on";
  for (const std::string& file : reference_files) {
    auto text = std::make_shared<SuffixAutomaton>();
    text->append(tokenizer.encode_raw(read_text(file, kTextFileLimitBytes), Specials::kAsText));
    options.references.push_back(std::move(text));
  }
  return options;
}

ContextPlan plan_for(const LoadedModel& loaded, const ModelOptions& options, const Forward& forward, std::uint64_t promised_bytes) {
  const std::uint64_t available = available_memory_bytes();
  std::optional<std::size_t> requested;
  if (options.context > 0) requested = static_cast<std::size_t>(options.context);
  return plan_context(loaded.kv_layout(), loaded.model.config().context_length, available - std::min(available, promised_bytes),
                      forward.chunk(), requested, options.cache_mib << 20);
}

void check_fits(const ContextPlan& plan, std::size_t tokens) {
  if (tokens <= plan.context) return;
  throw_bad_request(fmt::format("{} tokens exceed the context of {}", tokens, plan.context));
}

void print_stats(const GenerationResult& result) {
  const GenerationStats& stats = result.stats;
  fmt::print(stderr, "prompt: {} tokens, {} cached, {:.1f} tok/s; answer: {} tokens, {:.1f} tok/s; ended by {}\n", stats.prompt_tokens,
             stats.cached_tokens, stats.prefill_tokens_per_second(), stats.generated_tokens, stats.decode_tokens_per_second(),
             finish_name(result.finish));
  if (stats.drafted_tokens == 0) return;
  fmt::print(stderr, "speculation: {} of {} guessed tokens came true\n", stats.accepted_tokens, stats.drafted_tokens);
}

}  // namespace quench::cli
