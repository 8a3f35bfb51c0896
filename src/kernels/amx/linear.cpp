#include "kernels/amx/bf16_linear.h"
#include "kernels/amx/group_linear.h"
#include "kernels/amx/super_linear.h"
#include "kernels/fillers.h"

namespace quench::amx {
namespace {

// Fewer tokens than this run the kernels of AVX-512: estimates from instruction counts (docs/kernels.md), no machine has measured them.
constexpr std::uint8_t kFewForGroups = 5;
constexpr std::uint8_t kFewForBytes = 6;  ///< super-blocks whose folding is two multiplications a line, or one
constexpr std::uint8_t kFewForWords = 9;  ///< super-blocks whose folding costs as much as the products of 60 tokens
constexpr std::uint8_t kFewForBf16 = 2;   ///< the other path takes two fma a product

struct Filler {
  KernelTable& table;

  void set(Format format, LinearKernel kernel, std::uint8_t few) const noexcept {
    const auto slot = static_cast<std::size_t>(format);
    table.linear_few[slot] = table.linear[slot];
    table.few_tokens[slot] = few;
    table.max_tiles[slot] = 2;
    table.linear[slot] = kernel;
  }
  template <template <class> class View>
  void group(Format format) const noexcept {
    set(format, GroupLinear<View>::tiles, kFewForGroups);
  }
  template <template <class> class View, class Folding>
  void super(Format format) const noexcept {
    constexpr bool kWords = Folding::kCost == FoldingCost::kWords;
    set(format, SuperLinear<View<V>, Folding>::packed, kWords ? kFewForWords : kFewForBytes);
  }
  template <template <class> class RowType, Format kFormat, template <int> class Folding>
  void raw() const noexcept {
    using View = generic::RawSuper<V, RowType<V>>;
    set(kFormat, SuperLinear<View, Folding<View::kBias>>::template raw<RowType<V>, kFormat>, kFewForWords);
  }
};

void fill_groups(const Filler& filler) noexcept {
  filler.group<generic::Q8_0View>(Format::kQ8_0);
  filler.group<generic::Q4_0View>(Format::kQ4_0);
  filler.group<generic::Q4_1View>(Format::kQ4_1);
  filler.group<generic::Q5_0View>(Format::kQ5_0);
  filler.group<generic::Q5_1View>(Format::kQ5_1);
  filler.group<generic::Q1_0View>(Format::kQ1_0);
  filler.group<generic::Q2_0View>(Format::kQ2_0);
  filler.group<generic::Iq4_NLView>(Format::kIq4_NL);
  filler.group<generic::Mxfp4View>(Format::kMxfp4);
  filler.group<generic::Nvfp4View>(Format::kNvfp4);
}

void fill_super_blocks(const Filler& filler) noexcept {
  filler.super<generic::Q2_KView, NegatedBytes<generic::Q2_KView<V>::kBias>>(Format::kQ2_K);
  filler.super<generic::Q3_KView, NegatedBytes<generic::Q3_KView<V>::kBias>>(Format::kQ3_K);
  filler.super<generic::Q4_KView, ScaleDigits>(Format::kQ4_K);
  filler.super<generic::Q5_KView, ScaleDigits>(Format::kQ5_K);
  filler.super<generic::Q6_KView, WordBytes<generic::Q6_KView<V>::kBias>>(Format::kQ6_K);
  filler.super<generic::Iq4_XSView, WordBytes<generic::Iq4_XSView<V>::kBias>>(Format::kIq4_XS);
  filler.super<generic::Tq2_0View, NegatedBytes<generic::Tq2_0View<V>::kBias>>(Format::kTq2_0);
  filler.raw<generic::Tq1_0Row, Format::kTq1_0, NegatedBytes>();
  filler.raw<generic::Iq1_SRow, Format::kIq1_S, WordBytes>();
  filler.raw<generic::Iq1_MRow, Format::kIq1_M, WordBytes>();
  filler.raw<generic::Iq2_XXSRow, Format::kIq2_XXS, WordBytes>();
  filler.raw<generic::Iq2_XSRow, Format::kIq2_XS, WordBytes>();
  filler.raw<generic::Iq2_SRow, Format::kIq2_S, WordBytes>();
  filler.raw<generic::Iq3_XXSRow, Format::kIq3_XXS, WordBytes>();
  filler.raw<generic::Iq3_SRow, Format::kIq3_S, WordBytes>();
}

}  // namespace

void fill_linear(KernelTable& table, bool with_bf16) {
  const Filler filler{table};
  fill_groups(filler);
  fill_super_blocks(filler);
  if (with_bf16) filler.set(Format::kBF16, Bf16Linear::tiles, kFewForBf16);
  // Two units of 16 tokens are the least that keep the multiplier busy. Every processor with tiles has 2 MiB of L2: the activations of
  // more tokens fit, and unpacking the weights is shared by more.
  table.blocking = {.group = 32, .activation_bytes = 1 << 20, .units = true};
}

}  // namespace quench::amx
