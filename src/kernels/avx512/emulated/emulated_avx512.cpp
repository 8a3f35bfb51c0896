#include "kernels/avx512/emulated/emulated_avx512.h"

#include "kernels/fillers.h"

// Compiled with the macro avx512 defined as avx512_emulated, so that these kernels and the real ones live in one program.

namespace quench {

const KernelTable& emulated_avx512_kernels() {
  static const KernelTable table = [] {
    KernelTable filled = kernels_for(Isa::kScalar);
    filled.isa = Isa::kAvx512;
    filled.name = "avx512 (emulated)";
    avx512::fill_linear(filled);
    avx512::fill_quantize(filled);
    avx512::fill_rows(filled);
    avx512::fill_attention(filled);
    return filled;
  }();
  return table;
}

}  // namespace quench
