#include "kernels/table.h"

#include <string>
#include <utility>

#include "kernels/fillers.h"

namespace quench {
namespace {

using Filler = void (*)(KernelTable&);

KernelTable spec_table() {
  KernelTable table;
  spec::fill_linear(table);
  spec::fill_quantize(table);
  spec::fill_rows(table);
  spec::fill_attention(table);
  return table;
}

/// Starts from the scalar kernels, so that an operation without one of its own still works.
[[maybe_unused]] KernelTable isa_table(Isa isa, Filler fill_linear, Filler fill_quantize, Filler fill_rows, Filler fill_attention,
                                       Filler fill_peaks) {
  KernelTable table = spec_table();
  table.isa = isa;
  table.name = isa_name(isa).data();
  fill_linear(table);
  fill_quantize(table);
  fill_rows(table);
  fill_attention(table);
  fill_peaks(table);
  return table;
}

}  // namespace

const KernelTable& kernels_for(Isa isa) {
  switch (isa) {
#ifdef QUENCH_HAVE_AVX2
    case Isa::kAvx2: {
      static const KernelTable table =
          isa_table(isa, avx2::fill_linear, avx2::fill_quantize, avx2::fill_rows, avx2::fill_attention, avx2::fill_peaks);
      return table;
    }
#endif
#ifdef QUENCH_HAVE_AVX512
    case Isa::kAvx512: {
      static const KernelTable table =
          isa_table(isa, avx512::fill_linear, avx512::fill_quantize, avx512::fill_rows, avx512::fill_attention, avx512::fill_peaks);
      return table;
    }
#endif
#if defined(QUENCH_HAVE_AMX) && defined(QUENCH_HAVE_AVX512)
    case Isa::kAmx: {
      static const KernelTable table = [isa] {
        KernelTable over = kernels_for(Isa::kAvx512);
        over.isa = isa;
        over.name = isa_name(isa).data();
        amx::fill_linear(over, cpu_features().amx_bf16);
        amx::fill_peaks(over, cpu_features().amx_bf16);
        return over;
      }();
      return table;
    }
#endif
#ifdef QUENCH_HAVE_NEON
    case Isa::kNeon: {
      static const KernelTable table =
          isa_table(isa, neon::fill_linear, neon::fill_quantize, neon::fill_rows, neon::fill_attention, neon::fill_peaks);
      return table;
    }
#endif
    default: {
      static const KernelTable table = spec_table();
      return table;
    }
  }
}

std::vector<KernelPath> kernel_paths(const KernelTable& table) {
  const KernelTable& scalar = kernels_for(Isa::kScalar);
  // The table of tiles has no kernels of its own but for products.
  const std::string_view others = table.isa == Isa::kAmx ? isa_name(Isa::kAvx512) : table.name;
  std::vector<KernelPath> paths;
  const auto add = [&](std::string operation, auto kernel, auto scalar_kernel) {
    paths.push_back({std::move(operation), std::string(kernel == scalar_kernel ? scalar.name : others)});
  };
  for (const FormatInfo& info : all_formats()) {
    const auto slot = static_cast<std::size_t>(info.format);
    if (table.linear[slot] == nullptr) continue;
    add("linear " + std::string(info.name), table.linear_for(info.format, 1), scalar.linear[slot]);
    if (table.linear_few[slot] == nullptr) continue;
    const std::string vectors = std::exchange(paths.back().path, table.name);
    const int few = table.few_tokens[slot];
    if (few > 1) paths.back().path += "; " + vectors + " for fewer than " + std::to_string(few) + " tokens";
  }
  add("quantize_block32", table.quantize_block32, scalar.quantize_block32);
  add("quantize_block256", table.quantize_block256, scalar.quantize_block256);
  add("round_bf16", table.round_bf16, scalar.round_bf16);
  add("rms_norm", table.rms_norm, scalar.rms_norm);
  add("rope", table.rope, scalar.rope);
  add("add", table.add, scalar.add);
  add("scale", table.scale, scalar.scale);
  add("silu_mul", table.silu_mul, scalar.silu_mul);
  add("gelu_mul", table.gelu_mul, scalar.gelu_mul);
  add("soft_cap", table.soft_cap, scalar.soft_cap);
  add("sigmoid", table.sigmoid, scalar.sigmoid);
  add("softmax", table.softmax, scalar.softmax);
  add("add_scaled", table.add_scaled, scalar.add_scaled);
  for (const CacheType type : kCacheTypes) {
    std::string suffix = " ";
    suffix += cache_type_name(type);
    add("store_key" + suffix, table.cache(type).store_key, scalar.cache(type).store_key);
    add("store_value" + suffix, table.cache(type).store_value, scalar.cache(type).store_value);
    add("attend_page" + suffix, table.cache(type).attend_page, scalar.cache(type).attend_page);
  }
  add("quantize_queries", table.quantize_queries, scalar.quantize_queries);
  add("fold_attention", table.fold_attention, scalar.fold_attention);
  add("finish_attention", table.finish_attention, scalar.finish_attention);
  return paths;
}

}  // namespace quench
