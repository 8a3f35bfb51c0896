#pragma once

#include <vector>

#include "base/cpu.h"
#include "kernels/table.h"

#ifdef QUENCH_HAVE_EMULATED_KERNELS
#include "kernels/amx/emulated/emulated_amx.h"
#include "kernels/avx512/emulated/emulated_avx512.h"
#endif

namespace quench {

/// Every table that this machine can run except the scalar one, which they are compared with; for tests.
[[nodiscard]] inline std::vector<const KernelTable*> tables_under_test() {
  std::vector<const KernelTable*> tables;
  for (const Isa isa : available_isas()) {
    if (isa != Isa::kScalar) tables.push_back(&kernels_for(isa));
  }
#ifdef QUENCH_HAVE_EMULATED_KERNELS
  if (isa_available(Isa::kAvx2)) tables.insert(tables.end(), {&emulated_avx512_kernels(), &emulated_amx_kernels()});
#endif
  return tables;
}

}  // namespace quench
