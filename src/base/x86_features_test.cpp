#include "base/x86_features.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace quench {
namespace {

constexpr std::uint32_t bits(std::initializer_list<int> indices) {
  std::uint32_t word = 0;
  for (const int index : indices) word |= 1u << index;
  return word;
}

constexpr int kFma = 12, kF16c = 29;                                        // leaf 1, ecx
constexpr int kAvx2 = 5, kBmi2 = 8, kF = 16, kDq = 17, kBw = 30, kVl = 31;  // leaf 7, ebx
constexpr int kVnni = 11;                                                   // leaf 7, ecx
constexpr int kTileBf16 = 22, kTile = 24, kTileInt8 = 25;                   // leaf 7, edx

int requests = 0;
int grant() {
  ++requests;
  return 0;
}
int refuse() { return EPERM; }

/// A processor with everything, and a system that allows it.
X86Facts sapphire_rapids() {
  requests = 0;
  X86Facts facts;
  facts.leaf1_ecx = bits({kFma, kF16c});
  facts.leaf7_ebx = bits({kAvx2, kBmi2, kF, kDq, kBw, kVl});
  facts.leaf7_ecx = bits({kVnni});
  facts.leaf7_edx = bits({kTileBf16, kTile, kTileInt8});
  facts.palette_ebx = 8u << 16 | 64u;
  facts.palette_ecx = 16;
  facts.xcr0 = 0x600E7;
  facts.request_tiles = grant;
  return facts;
}

CpuFeatures decided(const X86Facts& facts) {
  CpuFeatures features;
  decide_x86(facts, features);
  return features;
}

std::vector<std::string> sentences(const CpuFeatures& features) {
  std::vector<std::string> all;
  for (const Refusal& refusal : features.refusals) all.push_back(features.describe(refusal));
  return all;
}

using Sentences = std::vector<std::string>;

TEST(X86Features, AProcessorThatHasAllAndMayUseItRunsTilesAndAsksOnce) {
  const CpuFeatures features = decided(sapphire_rapids());
  EXPECT_TRUE(features.avx2 && features.avx512 && features.amx && features.amx_bf16);
  EXPECT_TRUE(features.refusals.empty());
  EXPECT_EQ(requests, 1);
}

TEST(X86Features, Avx512WhoseRegistersAreNotSavedFallsToAvx2) {
  X86Facts facts = sapphire_rapids();
  facts.xcr0 = 0x7;
  const CpuFeatures features = decided(facts);
  EXPECT_TRUE(features.avx2);
  EXPECT_FALSE(features.avx512 || features.amx || features.amx_bf16);
  EXPECT_EQ(requests, 0);
  EXPECT_EQ(sentences(features), (Sentences{"avx512: the operating system does not save its registers (XCR0 0x7); avx2 runs instead",
                                            "amx: the operating system does not save its registers (XCR0 0x7); avx2 runs instead"}));
  EXPECT_EQ(features.refusals[0].cause, RefusalCause::kSystem);
}

TEST(X86Features, OneMissingKindOfAvx512RegisterIsEnoughToRefuse) {
  for (const std::uint64_t state : {0x20u, 0x40u, 0x80u}) {
    X86Facts facts = sapphire_rapids();
    facts.xcr0 &= ~state;
    EXPECT_FALSE(decided(facts).avx512) << state;
    EXPECT_FALSE(decided(facts).amx) << state;
  }
}

TEST(X86Features, Avx512WithoutVnniFallsToAvx2AndNamesIt) {
  X86Facts facts = sapphire_rapids();
  facts.leaf7_ecx = 0;
  facts.leaf7_edx = 0;
  const CpuFeatures features = decided(facts);
  EXPECT_TRUE(features.avx2);
  EXPECT_FALSE(features.avx512);
  EXPECT_EQ(sentences(features), (Sentences{"avx512: the processor lacks VNNI; avx2 runs instead"}));
  EXPECT_EQ(features.refusals[0].cause, RefusalCause::kProcessor);
}

TEST(X86Features, EveryMissingPartIsNamed) {
  X86Facts facts = sapphire_rapids();
  facts.leaf7_ebx = bits({kAvx2, kBmi2, kF, kVl});
  facts.leaf7_edx = 0;
  EXPECT_EQ(sentences(decided(facts)), (Sentences{"avx512: the processor lacks BW, DQ; avx2 runs instead"}));
}

TEST(X86Features, TilesWithoutVnniDoNotRun) {
  X86Facts facts = sapphire_rapids();
  facts.leaf7_ecx = 0;
  const CpuFeatures features = decided(facts);
  EXPECT_FALSE(features.amx);
  EXPECT_EQ(requests, 0);
  EXPECT_EQ(sentences(features).back(), "amx: avx512 does not run here; avx2 runs instead");
}

TEST(X86Features, TilesThatTheSystemDoesNotSaveFallToAvx512WithoutAsking) {
  for (const std::uint64_t saved : {0xE7u, 0x200E7u, 0x400E7u}) {
    X86Facts facts = sapphire_rapids();
    facts.xcr0 = saved;
    const CpuFeatures features = decided(facts);
    EXPECT_TRUE(features.avx512);
    EXPECT_FALSE(features.amx || features.amx_bf16);
    EXPECT_EQ(requests, 0);
    ASSERT_EQ(features.refusals.size(), 1u);
    EXPECT_EQ(features.refusals[0].cause, RefusalCause::kSystem);
  }
}

TEST(X86Features, TilesThatTheKernelRefusesFallToAvx512) {
  X86Facts facts = sapphire_rapids();
  facts.request_tiles = refuse;
  const CpuFeatures features = decided(facts);
  EXPECT_TRUE(features.avx512);
  EXPECT_FALSE(features.amx || features.amx_bf16);
  EXPECT_EQ(sentences(features), (Sentences{"amx: the kernel refuses the tiles (Operation not permitted); avx512 runs instead"}));
  EXPECT_EQ(features.refusals[0].cause, RefusalCause::kSystem);
}

TEST(X86Features, TilesWithoutBf16RunAllButBf16) {
  X86Facts facts = sapphire_rapids();
  facts.leaf7_edx = bits({kTile, kTileInt8});
  const CpuFeatures features = decided(facts);
  EXPECT_TRUE(features.amx);
  EXPECT_FALSE(features.amx_bf16);
  EXPECT_TRUE(features.refusals.empty());
}

TEST(X86Features, TilesOfAnotherShapeDoNotRun) {
  X86Facts facts = sapphire_rapids();
  facts.palette_ecx = 8;
  EXPECT_EQ(sentences(decided(facts)), (Sentences{"amx: the processor lacks 8 tiles of 16 rows of 64 bytes; avx512 runs instead"}));
  facts = sapphire_rapids();
  facts.leaf7_edx = bits({kTile, kTileBf16});
  EXPECT_EQ(sentences(decided(facts)), (Sentences{"amx: the processor lacks int8 tiles; avx512 runs instead"}));
}

TEST(X86Features, ASystemThatSavesNothingRunsScalarCode) {
  X86Facts facts = sapphire_rapids();
  facts.xcr0 = 0;
  const CpuFeatures features = decided(facts);
  EXPECT_FALSE(features.avx2 || features.avx512 || features.amx);
  EXPECT_EQ(sentences(features).front(), "avx2: the operating system does not save its registers (XCR0 0x0); scalar runs instead");
}

TEST(X86Features, WhatAProcessorDoesNotReportIsNotRefused) {
  X86Facts facts = sapphire_rapids();
  facts.leaf7_ebx = bits({kAvx2, kBmi2});
  facts.leaf7_ecx = 0;
  facts.leaf7_edx = 0;
  facts.xcr0 = 0x7;
  const CpuFeatures features = decided(facts);
  EXPECT_TRUE(features.avx2);
  EXPECT_TRUE(features.refusals.empty());
}

}  // namespace
}  // namespace quench
