#include <cstdlib>
#include <filesystem>

#include "../golden_logits.h"
#include "base/scratch_folder.h"
#include "kernel_check.h"

namespace quench::kernel_check {
namespace {

/// The pinned hashes of tests/golden/logits, whose path is in QUENCH_GOLDEN_LOGITS.
bool check_golden_logits(const KernelTable& kernels, const KernelTable&) {
  const char* file = std::getenv("QUENCH_GOLDEN_LOGITS");
  if (file == nullptr) {
    std::printf("  QUENCH_GOLDEN_LOGITS is not set\n");
    return false;
  }
  const auto pinned = golden::read(file);
  const ScratchFolder scratch;
  bool same = !pinned.empty();
  for (const golden::Case& entry : golden::cases()) {
    const auto expected = pinned.find(entry.name());
    const golden::Hashes found = golden::compute(entry, kernels, scratch / "");
    if (expected != pinned.end() && found == expected->second) continue;
    std::printf("  %s: %s differs from the pinned hash\n", entry.name().c_str(),
                expected != pinned.end() && found.file == expected->second.file ? "the hash of the logits" : "the synthetic model");
    same = false;
  }
  return same;
}

const Registration golden_logits("golden logits", check_golden_logits);

}  // namespace
}  // namespace quench::kernel_check
