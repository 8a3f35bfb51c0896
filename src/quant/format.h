#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace quench {

/// Every weight format that a GGUF file may carry and quench reads. Values are the file's own type numbers.
enum class Format : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIq2_XXS = 16,
  kIq2_XS = 17,
  kIq3_XXS = 18,
  kIq1_S = 19,
  kIq4_NL = 20,
  kIq3_S = 21,
  kIq2_S = 22,
  kIq4_XS = 23,
  kIq1_M = 29,
  kBF16 = 30,
  kTq1_0 = 34,
  kTq2_0 = 35,
  kMxfp4 = 39,
  kNvfp4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

/// How a product with this format is computed (numeric contract, docs/numeric-contract.md).
enum class Arithmetic {
  kFloat,      ///< f32, f16: fma over k; bf16: pairs in the order of the tile instruction
  kBlock,      ///< one f32 scale (and perhaps minimum) per group of 32 (16 for nvfp4), int32 dot inside the group
  kSuperBlock  ///< one f32 scale per 256, small integer scales inside, exact int32 sum over the 256
};

/// The shape of a format's integer form (quant/integer_form.h); constant per format, all zero for kFloat.
struct IntegerShape {
  int block_elements;  ///< elements that one file block covers (32, 64, 128 or 256)
  int group_elements;  ///< kBlock: 32, or 16 for nvfp4; kSuperBlock: 256
  int sub_elements;    ///< kSuperBlock: 16 or 32; kBlock: equal to group_elements
  bool has_min;
};

struct IntegerBlock;

struct FormatInfo {
  Format format;
  std::string_view name;  ///< as llama.cpp prints it: "q4_K", "iq2_xxs", "f16"
  int block_elements;
  int block_bytes;
  Arithmetic arithmetic;
  IntegerShape shape;
  /// Splits one file block into its integer form; nullptr for kFloat. Only the first block_elements quants and the used scales
  /// are written.
  void (*unpack)(const std::byte* block, IntegerBlock& out) noexcept;
  /// Decodes `n_blocks` blocks to f32, bit for bit as PyPI gguf does (q1_0, q2_0: as ggml's to_float).
  void (*decode)(const std::byte* blocks, std::size_t n_blocks, float* out) noexcept;
  /// Encodes finite values; nullptr where quench has no encoder.
  void (*encode)(const float* values, std::size_t n_blocks, std::byte* blocks) noexcept;
};

/// One row per format, in the order of the enumeration.
[[nodiscard]] std::span<const FormatInfo> all_formats() noexcept;
/// `format` is an enumerator: numbers from outside go through format_from_type_number first.
[[nodiscard]] const FormatInfo& format_info(Format format) noexcept;
[[nodiscard]] std::optional<Format> format_from_type_number(std::uint32_t number) noexcept;
/// Upper or lower case: "Q4_K", "q4_k".
[[nodiscard]] std::optional<Format> format_from_name(std::string_view name) noexcept;

/// Bytes of one row of `elements`, or nothing when they are no whole number of blocks.
[[nodiscard]] std::optional<std::uint64_t> row_bytes(Format format, std::uint64_t elements) noexcept;

}  // namespace quench
