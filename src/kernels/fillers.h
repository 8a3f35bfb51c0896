#pragma once

#include "kernels/table.h"

namespace quench {

// What each folder of kernels exports: functions that put its kernels into a table and leave the other entries alone. A unit of one
// instruction set is compiled for it, so nothing but these may be called before the processor is known to have it.

#define QUENCH_DECLARE_FILLERS(isa)        \
  namespace isa {                          \
  void fill_linear(KernelTable& table);    \
  void fill_quantize(KernelTable& table);  \
  void fill_rows(KernelTable& table);      \
  void fill_attention(KernelTable& table); \
  void fill_peaks(KernelTable& table);     \
  }

QUENCH_DECLARE_FILLERS(spec)
QUENCH_DECLARE_FILLERS(avx2)
QUENCH_DECLARE_FILLERS(avx512)
QUENCH_DECLARE_FILLERS(neon)

#undef QUENCH_DECLARE_FILLERS

namespace amx {
/// Over a table of AVX-512 kernels, which stay for few tokens, and for bf16 unless the processor multiplies that, too (AMX-BF16).
void fill_linear(KernelTable& table, bool with_bf16);
void fill_peaks(KernelTable& table, bool with_bf16);
}  // namespace amx

}  // namespace quench
