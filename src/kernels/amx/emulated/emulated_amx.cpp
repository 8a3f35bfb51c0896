#include "kernels/amx/emulated/emulated_amx.h"

#include "kernels/avx512/emulated/emulated_avx512.h"
#include "kernels/fillers.h"

// Compiled with the macro amx defined as amx_emulated, so that these kernels and the real ones live in one program.

namespace quench {
namespace {

KernelTable filled_table(bool with_bf16) {
  KernelTable table = emulated_avx512_kernels();
  table.isa = Isa::kAmx;
  table.name = "amx (emulated)";
  amx::fill_linear(table, with_bf16);
  return table;
}

}  // namespace

const KernelTable& emulated_amx_kernels() {
  static const KernelTable table = [] {
    KernelTable always = filled_table(true);
    always.few_tokens.fill(0);
    return always;
  }();
  return table;
}

const KernelTable& emulated_amx_kernels_few_tokens_aside() {
  static const KernelTable table = filled_table(true);
  return table;
}

const KernelTable& emulated_amx_kernels_without_bf16() {
  static const KernelTable table = filled_table(false);
  return table;
}

}  // namespace quench
