#pragma once

#include "kernels/table.h"

namespace quench {

/// The AVX-512 kernels compiled for AVX2 through SIMDe, for tests on machines without AVX-512: the same source, the same bits, slow.
/// Linked only where CMake found SIMDe (then QUENCH_HAVE_EMULATED_KERNELS is defined); needs a processor with AVX2.
[[nodiscard]] const KernelTable& emulated_avx512_kernels();

}  // namespace quench
