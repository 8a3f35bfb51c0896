#include "kernels/table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/tables_under_test.h"

namespace quench {
namespace {

std::string path_of(const KernelTable& table, std::string_view operation) {
  const auto paths = kernel_paths(table);
  const auto found = std::ranges::find(paths, operation, &KernelPath::operation);
  return found == paths.end() ? std::string("none") : found->path;
}

TEST(KernelTable, EveryEntryIsFilledAndSaysWhichCodeItRuns) {
  const KernelTable& scalar = kernels_for(Isa::kScalar);
  for (const KernelPath& path : kernel_paths(scalar)) EXPECT_EQ(path.path, "scalar") << path.operation;
  for (const KernelTable* table : tables_under_test()) {
    EXPECT_EQ(kernel_paths(*table).size(), kernel_paths(scalar).size()) << table->name;
    const std::string_view rows = table->isa == Isa::kAmx ? "avx512" : table->name;
    for (const std::string_view operation : {"rms_norm", "attend_page f16"}) EXPECT_EQ(path_of(*table, operation), rows) << operation;
  }
}

#ifdef QUENCH_HAVE_EMULATED_KERNELS
TEST(KernelTable, AFewTokensRunVectorsAndMoreRunTiles) {
  const KernelTable& tiles = emulated_amx_kernels_few_tokens_aside();
  const KernelTable& vectors = emulated_avx512_kernels();
  for (const FormatInfo& info : all_formats()) {
    const auto slot = static_cast<std::size_t>(info.format);
    if (info.format == Format::kF32 || info.format == Format::kF16) {
      EXPECT_EQ(tiles.linear[slot], vectors.linear[slot]);
      continue;
    }
    const std::size_t few = tiles.few_tokens[slot];
    EXPECT_GT(few, 1u) << info.name;
    EXPECT_EQ(tiles.linear_for(info.format, few - 1), vectors.linear[slot]) << info.name;
    EXPECT_EQ(tiles.linear_for(info.format, few), tiles.linear[slot]) << info.name;
    EXPECT_NE(tiles.linear[slot], vectors.linear[slot]) << info.name;
  }
}

TEST(KernelTable, PathsNameTheInstructionSetOfEachOperation) {
  const KernelTable& tiles = emulated_amx_kernels_few_tokens_aside();
  EXPECT_EQ(path_of(tiles, "linear q4_K"), "amx (emulated); avx512 for fewer than 6 tokens");
  EXPECT_EQ(path_of(emulated_amx_kernels(), "linear q4_K"), "amx (emulated)");
  EXPECT_EQ(path_of(tiles, "linear f32"), "avx512");
  EXPECT_EQ(path_of(tiles, "rms_norm"), "avx512");
}

TEST(KernelTable, AProcessorWhoseTilesLackBf16MultipliesThatWithVectors) {
  const auto slot = static_cast<std::size_t>(Format::kBF16);
  const KernelTable& without = emulated_amx_kernels_without_bf16();
  EXPECT_EQ(without.linear[slot], emulated_avx512_kernels().linear[slot]);
  EXPECT_EQ(path_of(without, "linear bf16"), "avx512");
  EXPECT_EQ(path_of(without, "linear q8_0"), "amx (emulated); avx512 for fewer than 5 tokens");
}
#endif

}  // namespace
}  // namespace quench
