#include "golden_logits.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/scratch_folder.h"
#include "kernels/tables_under_test.h"

namespace quench::golden {
namespace {

std::filesystem::path golden_file() { return std::filesystem::path(QUENCH_SOURCE_DIR) / "tests" / "golden" / "logits" / "hashes.txt"; }

/// The file is made by this test itself, from the scalar definition: QUENCH_UPDATE_GOLDEN=1 (`./dev golden`).
TEST(GoldenLogits, EveryFormatAndFamilyGivesThePinnedBitsOnEveryInstructionSet) {
  const ScratchFolder scratch;
  const std::filesystem::path folder = scratch / "";
  if (std::getenv("QUENCH_UPDATE_GOLDEN") != nullptr) {
    std::map<std::string, Hashes> made;
    for (const Case& entry : cases()) made[entry.name()] = compute(entry, kernels_for(Isa::kScalar), folder);
    write(golden_file(), made);
  }
  const auto pinned = read(golden_file());
  std::vector<const KernelTable*> tables = tables_under_test();
  tables.push_back(&kernels_for(Isa::kScalar));
  for (const Case& entry : cases()) {
    const auto expected = pinned.find(entry.name());
    ASSERT_NE(expected, pinned.end()) << entry.name() << " has no pinned hash; run ./dev golden";
    for (const KernelTable* table : tables) {
      const Hashes found = compute(entry, *table, folder);
      EXPECT_EQ(found.file, expected->second.file) << entry.name() << ": the synthetic model itself changed";
      EXPECT_EQ(found.logits, expected->second.logits) << entry.name() << " on " << table->name;
    }
  }
}

}  // namespace
}  // namespace quench::golden
