#include "kernel_check.h"

// Compares every instruction set that runs here with the scalar definition, without a test framework: so that it can be compiled for
// another processor and run under an emulator (scripts/check_neon.sh).

int main() {
  using namespace quench;
  int failures = 0;
  int runs = 0;
  for (const Isa isa : available_isas()) {
    if (isa == Isa::kScalar) continue;
    const KernelTable& kernels = kernels_for(isa);
    for (const auto* entry = kernel_check::Registration::first(); entry != nullptr; entry = entry->next()) {
      ++runs;
      if (entry->check()(kernels, kernels_for(Isa::kScalar))) continue;
      std::printf("FAILED %s: %s\n", kernels.name, entry->name());
      ++failures;
    }
  }
  if (runs == 0) {
    std::printf("FAILED: no instruction set besides the scalar one runs here\n");
    return 1;
  }
  std::printf("%d checks, %d failures\n", runs, failures);
  return failures == 0 ? 0 : 1;
}
