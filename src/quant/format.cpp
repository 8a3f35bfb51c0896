#include "quant/format.h"

#include <array>

#include "base/checked.h"
#include "quant/block_formats.h"
#include "quant/block_layout.h"
#include "quant/float_formats.h"
#include "quant/i_quants.h"
#include "quant/integer_form.h"
#include "quant/k_quants.h"
#include "quant/table_quants.h"
#include "quant/ternary.h"

namespace quench {
namespace {

using Unpack = void (*)(const std::byte*, IntegerBlock&) noexcept;
using Encode = void (*)(const float*, std::size_t, std::byte*) noexcept;

// Every reference decodes in these steps and roundings: scale x sub-scale is exact in f32 (11 + 8 bits), then one multiplication and,
// with a minimum, one addition. So decoding goes through the integer form, and the two cannot disagree.

template <IntegerShape kShape>
void reconstruct_groups(const IntegerBlock& form, float* out) noexcept {
  constexpr std::size_t kGroup = kShape.group_elements;
  for (std::size_t g = 0; g < kShape.block_elements / kGroup; ++g) {
    const float scale = form.scale[g];
    for (std::size_t i = g * kGroup; i < (g + 1) * kGroup; ++i) {
      out[i] = scale * static_cast<float>(form.quants[i]);
      if constexpr (kShape.has_min) out[i] += form.min[g];
    }
  }
}

template <IntegerShape kShape>
void reconstruct_sub_blocks(const IntegerBlock& form, float* out) noexcept {
  constexpr std::size_t kSub = kShape.sub_elements;
  for (std::size_t j = 0; j < 256 / kSub; ++j) {
    const float scale = form.scale[0] * static_cast<float>(form.sub_scale[j]);
    for (std::size_t i = j * kSub; i < (j + 1) * kSub; ++i) out[i] = scale * static_cast<float>(form.quants[i]);
    if constexpr (kShape.has_min) {
      const float min = form.min[0] * static_cast<float>(form.sub_min[j]);
      for (std::size_t i = j * kSub; i < (j + 1) * kSub; ++i) out[i] -= min;
    }
  }
}

template <Unpack kUnpack, IntegerShape kShape, std::size_t kBytes>
void decode(const std::byte* blocks, std::size_t n_blocks, float* out) noexcept {
  IntegerBlock form;
  for (std::size_t i = 0; i < n_blocks; ++i) {
    kUnpack(blocks + i * kBytes, form);
    if constexpr (kShape.block_elements == 256) {
      reconstruct_sub_blocks<kShape>(form, out + i * kShape.block_elements);
    } else {
      reconstruct_groups<kShape>(form, out + i * kShape.block_elements);
    }
  }
}

constexpr IntegerShape kOf32 = {.block_elements = 32, .group_elements = 32, .sub_elements = 32, .has_min = false};
constexpr IntegerShape kOf32WithMin = {.block_elements = 32, .group_elements = 32, .sub_elements = 32, .has_min = true};
constexpr IntegerShape kTwoOf32 = {.block_elements = 64, .group_elements = 32, .sub_elements = 32, .has_min = false};
constexpr IntegerShape kFourOf32 = {.block_elements = 128, .group_elements = 32, .sub_elements = 32, .has_min = false};
constexpr IntegerShape kFourOf16 = {.block_elements = 64, .group_elements = 16, .sub_elements = 16, .has_min = false};
constexpr IntegerShape kSub16 = {.block_elements = 256, .group_elements = 256, .sub_elements = 16, .has_min = false};
constexpr IntegerShape kSub16WithMin = {.block_elements = 256, .group_elements = 256, .sub_elements = 16, .has_min = true};
constexpr IntegerShape kSub32 = {.block_elements = 256, .group_elements = 256, .sub_elements = 32, .has_min = false};
constexpr IntegerShape kSub32WithMin = {.block_elements = 256, .group_elements = 256, .sub_elements = 32, .has_min = true};

template <class Block, Unpack kUnpack, IntegerShape kShape>
constexpr FormatInfo row(Format format, std::string_view name, Encode encode) {
  return {.format = format,
          .name = name,
          .block_elements = kShape.block_elements,
          .block_bytes = sizeof(Block),
          .arithmetic = kShape.block_elements == 256 ? Arithmetic::kSuperBlock : Arithmetic::kBlock,
          .shape = kShape,
          .unpack = kUnpack,
          .decode = decode<kUnpack, kShape, sizeof(Block)>,
          .encode = encode};
}

template <class Element>
constexpr FormatInfo float_row(Format format, std::string_view name, decltype(FormatInfo::decode) decode_elements, Encode encode) {
  return {.format = format,
          .name = name,
          .block_elements = 1,
          .block_bytes = sizeof(Element),
          .arithmetic = Arithmetic::kFloat,
          .shape = {},
          .unpack = nullptr,
          .decode = decode_elements,
          .encode = encode};
}

constexpr std::array kFormats = {
    float_row<float>(Format::kF32, "f32", decode_f32, encode_f32),
    float_row<F16>(Format::kF16, "f16", decode_f16, encode_f16),
    row<BlockQ4_0, unpack_q4_0, kOf32>(Format::kQ4_0, "q4_0", encode_q4_0),
    row<BlockQ4_1, unpack_q4_1, kOf32WithMin>(Format::kQ4_1, "q4_1", encode_q4_1),
    row<BlockQ5_0, unpack_q5_0, kOf32>(Format::kQ5_0, "q5_0", encode_q5_0),
    row<BlockQ5_1, unpack_q5_1, kOf32WithMin>(Format::kQ5_1, "q5_1", encode_q5_1),
    row<BlockQ8_0, unpack_q8_0, kOf32>(Format::kQ8_0, "q8_0", encode_q8_0),
    row<BlockQ2_K, unpack_q2_K, kSub16WithMin>(Format::kQ2_K, "q2_K", encode_q2_K),
    row<BlockQ3_K, unpack_q3_K, kSub16>(Format::kQ3_K, "q3_K", encode_q3_K),
    row<BlockQ4_K, unpack_q4_K, kSub32WithMin>(Format::kQ4_K, "q4_K", encode_q4_K),
    row<BlockQ5_K, unpack_q5_K, kSub32WithMin>(Format::kQ5_K, "q5_K", encode_q5_K),
    row<BlockQ6_K, unpack_q6_K, kSub16>(Format::kQ6_K, "q6_K", encode_q6_K),
    row<BlockIq2_XXS, unpack_iq2_xxs, kSub32>(Format::kIq2_XXS, "iq2_xxs", nullptr),
    row<BlockIq2_XS, unpack_iq2_xs, kSub16>(Format::kIq2_XS, "iq2_xs", nullptr),
    row<BlockIq3_XXS, unpack_iq3_xxs, kSub32>(Format::kIq3_XXS, "iq3_xxs", nullptr),
    row<BlockIq1_S, unpack_iq1_s, kSub32>(Format::kIq1_S, "iq1_s", nullptr),
    row<BlockIq4_NL, unpack_iq4_nl, kOf32>(Format::kIq4_NL, "iq4_nl", encode_iq4_nl),
    row<BlockIq3_S, unpack_iq3_s, kSub32>(Format::kIq3_S, "iq3_s", nullptr),
    row<BlockIq2_S, unpack_iq2_s, kSub16>(Format::kIq2_S, "iq2_s", nullptr),
    row<BlockIq4_XS, unpack_iq4_xs, kSub32>(Format::kIq4_XS, "iq4_xs", encode_iq4_xs),
    row<BlockIq1_M, unpack_iq1_m, kSub16>(Format::kIq1_M, "iq1_m", nullptr),
    float_row<BF16>(Format::kBF16, "bf16", decode_bf16, encode_bf16),
    row<BlockTq1_0, unpack_tq1_0, kSub32>(Format::kTq1_0, "tq1_0", encode_tq1_0),
    row<BlockTq2_0, unpack_tq2_0, kSub32>(Format::kTq2_0, "tq2_0", encode_tq2_0),
    row<BlockMxfp4, unpack_mxfp4, kOf32>(Format::kMxfp4, "mxfp4", encode_mxfp4),
    row<BlockNvfp4, unpack_nvfp4, kFourOf16>(Format::kNvfp4, "nvfp4", encode_nvfp4),
    row<BlockQ1_0, unpack_q1_0, kFourOf32>(Format::kQ1_0, "q1_0", encode_q1_0),
    row<BlockQ2_0, unpack_q2_0, kTwoOf32>(Format::kQ2_0, "q2_0", encode_q2_0),
};

constexpr std::uint32_t kTypeNumbers = 43;
constexpr std::uint8_t kNoRow = 0xFF;

/// Row of each type number.
constexpr auto kRowOf = [] {
  std::array<std::uint8_t, kTypeNumbers> rows{};
  rows.fill(kNoRow);
  for (std::size_t i = 0; i < kFormats.size(); ++i) rows[static_cast<std::size_t>(kFormats[i].format)] = static_cast<std::uint8_t>(i);
  return rows;
}();

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_in_any_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

}  // namespace

std::span<const FormatInfo> all_formats() noexcept { return kFormats; }

const FormatInfo& format_info(Format format) noexcept { return kFormats[kRowOf[static_cast<std::size_t>(format)]]; }

std::optional<Format> format_from_type_number(std::uint32_t number) noexcept {
  if (number >= kTypeNumbers || kRowOf[number] == kNoRow) return std::nullopt;
  return static_cast<Format>(number);
}

std::optional<Format> format_from_name(std::string_view name) noexcept {
  for (const FormatInfo& info : kFormats) {
    if (equal_in_any_case(name, info.name)) return info.format;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> row_bytes(Format format, std::uint64_t elements) noexcept {
  const FormatInfo& info = format_info(format);
  const auto block_elements = static_cast<std::uint64_t>(info.block_elements);
  if (elements % block_elements != 0) return std::nullopt;
  return checked_mul(elements / block_elements, static_cast<std::uint64_t>(info.block_bytes));
}

}  // namespace quench
