#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quant/format.h"

namespace quench {

/// What a matrix does; some are worth more bits than others.
enum class TensorRole { kEmbedding, kHead, kQuery, kKey, kValue, kAttentionOutput, kGate, kUp, kDown };

/// Where a matrix stands.
struct TensorPlace {
  TensorRole role;
  int layer = 0;
  int n_layers = 1;
  int heads_per_kv_head = 1;
  bool tied = false;  ///< the embedding is also the head
  std::uint64_t columns = 0;
};

/// The file types of llama.cpp, by their number in general.file_type.
enum class FileType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 7,
  kQ5_0 = 8,
  kQ5_1 = 9,
  kQ2_K = 10,
  kQ3_K_S = 11,
  kQ3_K_M = 12,
  kQ3_K_L = 13,
  kQ4_K_S = 14,
  kQ4_K_M = 15,
  kQ5_K_S = 16,
  kQ5_K_M = 17,
  kQ6_K = 18,
  kIq2_XXS = 19,
  kIq2_XS = 20,
  kQ2_K_S = 21,
  kIq3_XS = 22,
  kIq3_XXS = 23,
  kIq1_S = 24,
  kIq4_NL = 25,
  kIq3_S = 26,
  kIq3_M = 27,
  kIq2_S = 28,
  kIq2_M = 29,
  kIq4_XS = 30,
  kIq1_M = 31,
  kBF16 = 32,
  kTq1_0 = 36,
  kTq2_0 = 37,
  kMxfp4 = 38,
  kNvfp4 = 39,
  kQ1_0 = 40,
  kQ2_0 = 41,
};

/// Which format each matrix of a file gets.
class FormatRecipe {
 public:
  /// Any case. A format's name alone: every matrix has that format. Throws Error(kBadRequest) listing the names.
  static FormatRecipe named(std::string_view name);
  [[nodiscard]] static std::vector<std::string> names();

  /// The rules are those of llama.cpp's quantizer without an importance matrix, for dense models.
  [[nodiscard]] Format format_of(const TensorPlace& place) const;
  [[nodiscard]] FileType file_type() const noexcept { return type_; }
  /// As llama.cpp writes it: "Q4_K_M".
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  FormatRecipe(std::string name, Format base, FileType type, bool mixed)
      : name_(std::move(name)), base_(base), type_(type), mixed_(mixed) {}

  std::string name_;
  Format base_;
  FileType type_;
  bool mixed_;
};

}  // namespace quench
