#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "gguf/reader.h"
#include "kernels/compute.h"
#include "model/forward.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace quench::cli {

/// Options that every command with a model shares.
struct ModelOptions {
  std::string model;               ///< -m
  std::vector<std::string> words;  ///< positionals: the model first unless -m named it
  int threads = 0;                 ///< 0 = physical cores within affinity and quota
  std::uint64_t context = 0;       ///< 0 = trained length, bounded by memory
  std::uint64_t cache_mib = 0;     ///< budget of the KV cache; 0 = half of what is free
  std::uint64_t window = 0;
  float expert_top_p = 1.0f;
  std::uint64_t chunk = 512;
  std::string cache_type = "f16";
  std::string saved_cache;  ///< file; empty = none
  std::uint64_t saved_cache_mib = 4096;
  std::string draft_model;  ///< file; empty = none
  TokenizerOptions tokenizer;

  /// The model's path; the other positionals. Throws Error(kBadRequest) when there is none, or more words than `most_words`.
  [[nodiscard]] std::string take_model(std::size_t most_words);
  /// Throws Error(kBadRequest) when there is no such type.
  [[nodiscard]] CacheType parsed_cache_type() const;
};

/// -m and the positionals; `usage` is how the help shows them, "MODEL [MESSAGE]".
void add_model_argument(CLI::App& command, ModelOptions& options, const std::string& usage, const std::string& words_help);
void add_tokenizer_options(CLI::App& command, ModelOptions& options);
/// Threads, context, chunk, and what follows.
void add_compute_options(CLI::App& command, ModelOptions& options);
/// What changes a model's answers: window, share of the experts, cache type.
void add_model_change_options(CLI::App& command, ModelOptions& options);

/// Saved caches and draft models, for commands that answer.
void add_engine_options(CLI::App& command, ModelOptions& options);

/// Runs `action`; an error about what the file holds, or that it is too much, gets the file's name in front.
template <typename Action>
auto naming_file(const std::string& path, const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    const bool about_file = error.kind() == ErrorKind::kBadFile || error.kind() == ErrorKind::kUnsupported;
    const std::string_view message = error.what();
    if (!about_file || message.starts_with(path)) throw;
    throw Error(error.kind(), path + ": " + error.what());
  }
}

/// Throws Error(kUnsupported) for a file that holds a vocabulary only.
void require_weights(const gguf::Reader& reader);

/// A model ready to run: file, pool, kernels, weights. Loading shows a progress bar.
class LoadedModel {
 public:
  LoadedModel(const std::string& path, const ModelOptions& options);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  gguf::Reader reader;
  ThreadPool pool;
  Compute compute;
  double load_seconds = 0;
  CacheType cache_type;
  Model model;

  [[nodiscard]] KvLayout kv_layout() const { return model.kv_layout(cache_type); }

  [[nodiscard]] std::unique_ptr<Tokenizer> make_tokenizer(const ModelOptions& options) const;
};

/// "1 2 3" or "1,2,3" as ids. Throws Error(kBadRequest) naming the word that is no id.
[[nodiscard]] std::vector<Token> parse_ids(const std::string& text);
/// \n \t \r \\ \" \' \xHH as their bytes; an unknown escape stays as it is.
[[nodiscard]] std::string process_escapes(const std::string& text);

/// Largest file that a text option takes.
inline constexpr std::uint64_t kTextFileLimitBytes = std::uint64_t{64} << 20;

}  // namespace quench::cli
