#pragma once

#include "kernels/table.h"

namespace quench {

/// The AMX kernels on emulated tiles (emulated_tiles.h) and on the emulated AVX-512 kernels, for tests on machines without AMX: the same
/// source, the same bits, slow. Every product runs on tiles, even of one token, so that small tests reach them.
[[nodiscard]] const KernelTable& emulated_amx_kernels();
/// As a real machine has it: a few tokens run the AVX-512 kernels.
[[nodiscard]] const KernelTable& emulated_amx_kernels_few_tokens_aside();
/// As a real machine has it whose tiles multiply bytes only.
[[nodiscard]] const KernelTable& emulated_amx_kernels_without_bf16();

}  // namespace quench
