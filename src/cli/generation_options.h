#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/model_options.h"
#include "engine/context_plan.h"
#include "engine/generation.h"

namespace quench::cli {

/// Flags that say when an answer ends.
struct GenerationFlags {
  std::optional<std::int64_t> max_tokens;
  std::vector<std::string> stop_texts;
  std::vector<Token> stop_ids;
  bool ignore_end = false;
  bool stats = false;
  std::string speculation = "on";
  std::vector<std::string> reference_files;

  /// `most_tokens_help` says of -n what happens without it.
  void add_to(CLI::App& command, const std::string& most_tokens_help);
  [[nodiscard]] bool max_tokens_given() const noexcept { return max_tokens.has_value() && *max_tokens >= 0; }
  /// Reads the reference files. Throws Error(kBadRequest) for -n 0 and for stop ids outside the vocabulary.
  [[nodiscard]] GenerationOptions generation_options(const Tokenizer& tokenizer, std::size_t default_tokens) const;
};

/// The context that these options and this machine's memory give.
/// promised_bytes: of the free memory, kept for something else
[[nodiscard]] ContextPlan plan_for(const LoadedModel& loaded, const ModelOptions& options, const Forward& forward,
                                   std::uint64_t promised_bytes = 0);

/// Throws Error(kBadRequest) with both numbers when so many tokens exceed the context.
void check_fits(const ContextPlan& plan, std::size_t tokens);

/// Tokens and speeds of one answer, on stderr.
void print_stats(const GenerationResult& result);

}  // namespace quench::cli
