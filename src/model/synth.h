#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quench {

/// A model with random weights: for tests and benchmarks, where the values do not matter but the geometry does.
struct SynthSpec {
  std::string family = "qwen3";  ///< synth_families()
  std::string size = "tiny";     ///< synth_sizes(family)
  /// A format of the table in any case ("q8_0", "Q4_K"): all matrices have it. Or one of llama.cpp's mixes ("q4_K_M", "iq3_M"; for a name
  /// that is a format too, "q4_0_mix"): important tensors get more bits by its rules. Rows that are no whole number of blocks fall back
  /// as llama.cpp does.
  std::string format = "q8_0";
  std::uint64_t seed = 1;  ///< the same spec gives the same bytes
  /// A GGUF file whose tokenizer is copied; padded with unused tokens up to the size's own vocabulary.
  std::optional<std::filesystem::path> vocabulary{};
  std::optional<std::uint64_t> vocabulary_size{};  ///< of a generated one; at least 512
  std::optional<std::uint64_t> context_length{};   ///< default: what the real model has, times rope_factor
  std::string rope_scaling = "default";            ///< none, linear, yarn, llama3 (llama only); default: as the real model
  double rope_factor = 4.0;                        ///< of a scaling that is asked for
  std::optional<bool> untied{};                    ///< an output matrix of its own; default: as the real model
};

/// Writes the model in constant memory (beside the vocabulary). llama.cpp loads it too. Throws Error(kBadRequest) naming what is wrong
/// in the spec and what is possible, and as gguf::Writer does.
void write_synthetic_model(const SynthSpec& spec, const std::filesystem::path& path);

[[nodiscard]] std::vector<std::string_view> synth_families();
/// Throws Error(kBadRequest) for an unknown family.
[[nodiscard]] std::vector<std::string_view> synth_sizes(std::string_view family);
/// All names that SynthSpec::format takes.
[[nodiscard]] std::vector<std::string> synth_formats();

}  // namespace quench
