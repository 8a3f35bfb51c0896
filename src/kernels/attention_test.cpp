#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/cache_page_for_test.h"
#include "kernels/tables_under_test.h"

namespace quench {
namespace {

const KernelTable& scalar() { return kernels_for(Isa::kScalar); }

std::vector<const KernelTable*> all_tables() {
  std::vector<const KernelTable*> tables = {&scalar()};
  for (const KernelTable* table : tables_under_test()) tables.push_back(table);
  return tables;
}

std::vector<float> random_row(Xoshiro256& random, std::size_t n, double magnitude) {
  std::vector<float> row(n);
  for (float& value : row) value = static_cast<float>((random.uniform() * 2.0 - 1.0) * magnitude);
  return row;
}

/// Random keys and values in the first `slots` slots.
void store_random(CachePage& page, Xoshiro256& random, std::size_t slots) {
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const std::vector<float> key = random_row(random, page.head_dim, 1.0);
    page.store(scalar(), slot, key, random_row(random, page.head_dim, 2.0));
  }
}

/// Queries with their states and outputs. Strides are wider than a head; what lies between must stay as it is.
struct Queries {
  static constexpr std::size_t kGap = 5;
  std::size_t count;
  std::size_t head_dim;
  std::vector<float> rows;
  std::vector<AttentionState> states;
  std::vector<float> out;

  Queries(Xoshiro256& random, std::size_t n, std::size_t dim)
      : count(n),
        head_dim(dim),
        rows(random_row(random, n * (dim + kGap), 3.0 / std::sqrt(static_cast<double>(dim)))),
        states(n, {kNoScore, 0.0f}),
        out(n * (dim + kGap), std::numeric_limits<float>::quiet_NaN()) {}

  void attend(const KernelTable& table, const CachePage& page, const std::vector<int>& first, const std::vector<int>& last,
              float cap = 0.0f) {
    std::vector<float> dense;
    for (std::size_t i = 0; i < count; ++i) {
      const auto row = rows.begin() + static_cast<std::ptrdiff_t>(i * (head_dim + kGap));
      dense.insert(dense.end(), row, row + static_cast<std::ptrdiff_t>(head_dim));
    }
    const QuantizedQueries quantized(table, dense);
    table.cache(page.type).attend_page({.queries = rows.data(),
                                        .query_stride = head_dim + kGap,
                                        .n_queries = count,
                                        .head_dim = head_dim,
                                        .keys = CachePage::bytes_of(page.keys),
                                        .values = CachePage::bytes_of(page.values),
                                        .first = first.data(),
                                        .last = last.data(),
                                        .soft_cap = cap,
                                        .states = states.data(),
                                        .out = out.data(),
                                        .out_stride = head_dim + kGap,
                                        .query_quants = quantized.quants.data(),
                                        .query_scales = quantized.scales.data()});
  }
  void attend(const KernelTable& table, const CachePage& page, int first, int last, float cap = 0.0f) {
    attend(table, page, std::vector<int>(count, first), std::vector<int>(count, last), cap);
  }
  /// Rows become what their quants stand for; head_dim is a multiple of 32.
  void round_to_quants() {
    for (std::size_t i = 0; i < count; ++i) {
      float* row = rows.data() + i * (head_dim + kGap);
      const QuantizedQueries quantized(scalar(), std::vector<float>(row, row + head_dim));
      for (std::size_t d = 0; d < head_dim; ++d)
        row[d] = quantized.scales[d / kCacheBlockChannels] * static_cast<float>(quantized.quants[d]);
    }
  }
  /// Query `index` alone, before any page.
  [[nodiscard]] Queries alone(std::size_t index) const {
    Queries one = *this;
    const std::size_t stride = head_dim + kGap;
    one.count = 1;
    one.rows.assign(rows.begin() + static_cast<std::ptrdiff_t>(index * stride),
                    rows.begin() + static_cast<std::ptrdiff_t>((index + 1) * stride));
    one.states.assign(1, {kNoScore, 0.0f});
    one.out.assign(stride, std::numeric_limits<float>::quiet_NaN());
    return one;
  }
  [[nodiscard]] std::vector<std::uint32_t> bits(std::size_t index) const {
    std::vector<std::uint32_t> words = {std::bit_cast<std::uint32_t>(states[index].max), std::bit_cast<std::uint32_t>(states[index].sum)};
    for (std::size_t d = 0; d < head_dim; ++d) words.push_back(std::bit_cast<std::uint32_t>(out[index * (head_dim + kGap) + d]));
    return words;
  }
  [[nodiscard]] std::vector<std::uint32_t> bits() const {
    std::vector<std::uint32_t> words;
    for (const AttentionState& state : states) {
      words.push_back(std::bit_cast<std::uint32_t>(state.max));
      words.push_back(std::bit_cast<std::uint32_t>(state.sum));
    }
    for (const float value : out) words.push_back(std::bit_cast<std::uint32_t>(value));
    return words;
  }
};

class Attention : public testing::TestWithParam<CacheType> {
 protected:
  /// Those that the type of the cache allows.
  static std::vector<std::size_t> head_dims(std::vector<std::size_t> dims) {
    if (GetParam() == CacheType::kQ8_0) std::erase_if(dims, [](std::size_t dim) { return dim % kCacheBlockChannels != 0; });
    return dims;
  }
};
INSTANTIATE_TEST_SUITE_P(Caches, Attention, testing::ValuesIn(kCacheTypes),
                         [](const auto& type) { return std::string(cache_type_name(type.param)); });

TEST_P(Attention, EveryInstructionSetGivesTheBitsOfTheDefinition) {
  Xoshiro256 random(11);
  for (const std::size_t head_dim : head_dims({8, 16, 24, 40, 64, 72, 80, 96, 128, 256, 512})) {
    for (int round = 0; round < 6; ++round) {
      const std::size_t n = 1 + random.below(15);
      const Queries start(random, n, head_dim);
      Queries expected = start;
      std::vector<Queries> actual(tables_under_test().size(), start);
      const float cap = round % 3 == 2 ? 2.0f : 0.0f;
      for (int page_index = 0; page_index < 3; ++page_index) {
        CachePage page(GetParam(), head_dim);
        const std::size_t length = 1 + random.below(kPagePositions);
        store_random(page, random, length);
        std::vector<int> first(n, 0);
        std::vector<int> last(n, static_cast<int>(length));
        for (std::size_t i = 0; i < n && round % 2 == 1; ++i) {
          first[i] = static_cast<int>(random.below(length + 1));
          last[i] = static_cast<int>(random.below(length + 1));  // often before first: not visible
        }
        expected.attend(scalar(), page, first, last, cap);
        for (std::size_t t = 0; t < actual.size(); ++t) {
          actual[t].attend(*tables_under_test()[t], page, first, last, cap);
          ASSERT_EQ(actual[t].bits(), expected.bits()) << tables_under_test()[t]->name << " head_dim " << head_dim << " queries " << n;
        }
      }
    }
  }
}

TEST_P(Attention, CausalBlocksAndWindowsGiveTheBitsOfTheDefinition) {
  constexpr std::size_t kHeadDim = 64;
  constexpr std::size_t kGroup = 3;
  Xoshiro256 random(12);
  CachePage page(GetParam(), kHeadDim);
  store_random(page, random, kPagePositions);
  for (const int window : {64, 40, 7, 1}) {
    const Queries start(random, kPagePositions * kGroup, kHeadDim);
    std::vector<int> first;
    std::vector<int> last;
    for (std::size_t i = 0; i < start.count; ++i) {
      last.push_back(static_cast<int>(i / kGroup) + 1);
      first.push_back(std::max(0, last.back() - window));
    }
    Queries expected = start;
    expected.attend(scalar(), page, first, last);
    for (const KernelTable* table : tables_under_test()) {
      Queries actual = start;
      actual.attend(*table, page, first, last);
      EXPECT_EQ(actual.bits(), expected.bits()) << table->name << " window " << window;
    }
  }
}

TEST_P(Attention, StoresAreTheSameOnEveryInstructionSetAndTouchOnlyTheirSlot) {
  Xoshiro256 random(13);
  for (const std::size_t head_dim : head_dims({8, 24, 64, 96, 128})) {
    for (const KernelTable* table : tables_under_test()) {
      CachePage expected(GetParam(), head_dim);
      CachePage actual(GetParam(), head_dim);
      for (const std::size_t slot : {0u, 15u, 16u, 41u, 63u}) {
        std::vector<float> key = random_row(random, head_dim, 70000.0);
        std::vector<float> value = random_row(random, head_dim, 1e-6);
        key[0] = 3e38f;
        key[1] = -65520.0f;
        value[0] = 0x1.002p+0f;  // a tie: halfway between two f16
        value[1] = -0.0f;
        expected.store(scalar(), slot, key, value);
        actual.store(*table, slot, key, value);
      }
      EXPECT_EQ(actual.keys, expected.keys) << table->name;
      EXPECT_EQ(actual.values, expected.values) << table->name;
    }
  }
}

TEST(AttentionLayout, F16KeysLieInStripsOf16PositionsAndValuesInRows) {
  constexpr std::size_t kHeadDim = 24;
  CachePage page(CacheType::kF16, kHeadDim);
  const CachePage untouched = page;
  std::vector<float> row(kHeadDim);
  for (std::size_t d = 0; d < kHeadDim; ++d) row[d] = static_cast<float>(d);
  row[23] = 1e30f;
  page.store(scalar(), 37, row, row);
  const auto* keys = reinterpret_cast<const F16*>(page.keys.data());
  const auto* values = reinterpret_cast<const F16*>(page.values.data());
  const F16 garbage = reinterpret_cast<const F16*>(untouched.keys.data())[0];
  EXPECT_EQ(keys[(2 * kHeadDim + 7) * 16 + 5], to_f16(7.0f));
  EXPECT_EQ(keys[(2 * kHeadDim + 23) * 16 + 5], to_f16(65504.0f));
  EXPECT_EQ(values[37 * kHeadDim + 9], to_f16(9.0f));
  EXPECT_EQ(values[36 * kHeadDim + 9], garbage);
  EXPECT_EQ(keys[(2 * kHeadDim + 7) * 16 + 6], garbage);
}

TEST(AttentionLayout, Q8KeysLieInPairsOfChannelsOf16PositionsWithAnF16ScalePerBlock) {
  constexpr std::size_t kHeadDim = 64;
  CachePage page(CacheType::kQ8_0, kHeadDim);
  std::vector<float> row(kHeadDim, 0.0f);
  row[33] = 127.0f * 0.5f;
  row[38] = -0.75f;
  row[39] = 0.25f;  // a tie: half of a step
  page.store(scalar(), 37, row, row);
  const std::byte* keys = CachePage::bytes_of(page.keys);
  const std::byte* values = CachePage::bytes_of(page.values);
  EXPECT_EQ(keys[((2 * 32 + 16) * 16 + 5) * 2 + 1], std::byte{127});
  EXPECT_EQ(keys[((2 * 32 + 19) * 16 + 5) * 2], std::byte{0xFE});
  EXPECT_EQ(keys[((2 * 32 + 19) * 16 + 5) * 2 + 1], std::byte{0});
  EXPECT_EQ(values[37 * kHeadDim + 33], std::byte{127});
  EXPECT_EQ(values[37 * kHeadDim + 38], std::byte{0xFE});
  EXPECT_EQ(page.key(37, 33), 63.5f);
  EXPECT_EQ(page.value(37, 38), -1.0f);
  EXPECT_EQ(page.key(37, 0), 0.0f) << "a block of zeros has a scale of zero";
}

TEST(AttentionLayout, QueriesForAQ8CacheAreQuantizedTo16BitsTheSameEverywhere) {
  Xoshiro256 random(23);
  std::vector<float> rows = random_row(random, 4 * kCacheBlockChannels, 3.0);
  std::fill_n(rows.begin() + kCacheBlockChannels, kCacheBlockChannels, 0.0f);
  rows[0] = -3.5f;
  rows[2 * kCacheBlockChannels] = 3e38f;
  std::fill_n(rows.begin() + 3 * kCacheBlockChannels, kCacheBlockChannels, 1e-43f);
  const QuantizedQueries expected(scalar(), rows);
  EXPECT_EQ(expected.quants[0], -32767);
  EXPECT_EQ(expected.scales[1], 0.0f);
  EXPECT_EQ(expected.quants[kCacheBlockChannels], 0);
  for (const KernelTable* table : tables_under_test()) {
    const QuantizedQueries actual(*table, rows);
    EXPECT_EQ(actual.quants, expected.quants) << table->name;
    EXPECT_EQ(actual.scales, expected.scales) << table->name;
  }
}

TEST(AttentionLayout, AQ8CacheHolds1_88TimesThePositionsOfAnF16One) {
  EXPECT_EQ(page_head_bytes(CacheType::kF16, 128), 16384u);
  EXPECT_EQ(page_head_bytes(CacheType::kQ8_0, 128), 8704u);
}

TEST_P(Attention, OneCachedPositionReturnsItsValue) {
  Xoshiro256 random(14);
  for (const KernelTable* table : all_tables()) {
    CachePage page(GetParam(), 64);
    std::vector<float> value = random_row(random, 64, 2.0);
    // What the cache holds of it.
    page.store(*table, 0, value, value);
    for (std::size_t d = 0; d < 64; ++d) value[d] = page.value(0, d);
    page.store(*table, 0, random_row(random, 64, 1.0), value);
    Queries queries(random, 3, 64);
    queries.attend(*table, page, 0, 1);
    for (std::size_t q = 0; q < 3; ++q) {
      float* out = queries.out.data() + q * (64 + Queries::kGap);
      table->finish_attention(out, queries.states[q].sum, 64);
      EXPECT_EQ(std::vector<float>(out, out + 64), value) << table->name;
    }
  }
}

TEST_P(Attention, AQuerysResultIsTheSameWhetherItsPageIsFullOrHalfFull) {
  Xoshiro256 random(15);
  for (const KernelTable* table : all_tables()) {
    for (const int length : {1, 15, 16, 17, 32, 47, 63}) {
      Xoshiro256 page_random(99);
      CachePage full(GetParam(), 128);
      store_random(full, page_random, kPagePositions);
      page_random = Xoshiro256(99);
      CachePage part(GetParam(), 128);
      store_random(part, page_random, static_cast<std::size_t>(length));
      Queries in_full(random, 5, 128);
      Queries in_part = in_full;
      in_full.attend(*table, full, 0, length);
      in_part.attend(*table, part, 0, length);
      EXPECT_EQ(in_full.bits(), in_part.bits()) << table->name << " length " << length;
    }
  }
}

TEST_P(Attention, AQuerysResultIsTheSameAloneOrAmongMany) {
  Xoshiro256 random(16);
  for (const KernelTable* table : all_tables()) {
    for (const std::size_t n : {2u, 5u, 7u, 13u, 30u}) {
      CachePage page(GetParam(), 96);
      store_random(page, random, 50);
      const Queries start(random, n, 96);
      std::vector<int> first;
      std::vector<int> last;
      for (std::size_t i = 0; i < n; ++i) {
        first.push_back(static_cast<int>(random.below(30)));
        last.push_back(first.back() + 1 + static_cast<int>(random.below(20)));
      }
      Queries together = start;
      together.attend(*table, page, first, last);
      for (std::size_t i = 0; i < n; ++i) {
        Queries one = start.alone(i);
        one.attend(*table, page, first[i], last[i]);
        EXPECT_EQ(one.bits(0), together.bits(i)) << table->name << " query " << i << " of " << n;
      }
    }
  }
}

TEST_P(Attention, WhatLiesOutsideTheVisibleSlotsChangesNothing) {
  Xoshiro256 random(17);
  for (const KernelTable* table : all_tables()) {
    CachePage clean(GetParam(), 64);
    store_random(clean, random, kPagePositions);
    for (const F16 pattern : {F16{0x7E00}, F16{0x7C00}, F16{0xFC00}, F16{0x7BFF}, F16{0x0001}, F16{0xFFFF}}) {
      CachePage dirty = clean;
      for (std::size_t slot = 0; slot < kPagePositions; ++slot) {
        if (slot >= 10 && slot < 41) continue;
        dirty.scribble(slot, pattern);
      }
      for (const float cap : {0.0f, 5.0f}) {
        Queries in_clean(random, 6, 64);
        Queries in_dirty = in_clean;
        in_clean.attend(*table, clean, 10, 41, cap);
        in_dirty.attend(*table, dirty, 10, 41, cap);
        EXPECT_EQ(in_clean.bits(), in_dirty.bits()) << table->name << " pattern " << pattern.bits;
      }
    }
  }
}

TEST_P(Attention, APageWithoutVisibleSlotsIsSkipped) {
  Xoshiro256 random(18);
  for (const KernelTable* table : all_tables()) {
    CachePage page(GetParam(), 64);
    store_random(page, random, 20);
    Queries queries(random, 4, 64);
    queries.attend(*table, page, 0, 20);
    const std::vector<std::uint32_t> before = queries.bits();
    queries.attend(*table, page, 20, 20);
    queries.attend(*table, page, 30, 10);
    EXPECT_EQ(queries.bits(), before) << table->name;
  }
}

/// Softmax attention in double over the stored keys and values of all pages.
std::vector<double> reference(const std::vector<CachePage>& pages, const std::vector<int>& lengths, const float* query, double cap) {
  const std::size_t head_dim = pages[0].head_dim;
  std::vector<double> out(head_dim, 0.0);
  double sum = 0.0;
  for (std::size_t page = 0; page < pages.size(); ++page) {
    for (std::size_t slot = 0; slot < static_cast<std::size_t>(lengths[page]); ++slot) {
      double score = 0.0;
      for (std::size_t d = 0; d < head_dim; ++d) {
        score += static_cast<double>(query[d]) * static_cast<double>(pages[page].key(slot, d));
      }
      if (cap > 0.0) score = cap * std::tanh(score / cap);
      const double weight = std::exp(score);
      sum += weight;
      for (std::size_t d = 0; d < head_dim; ++d) out[d] += weight * static_cast<double>(pages[page].value(slot, d));
    }
  }
  for (double& value : out) value /= sum;
  return out;
}

TEST_P(Attention, PagesTogetherAreSoftmaxOverAllTheirPositions) {
  Xoshiro256 random(19);
  for (const KernelTable* table : all_tables()) {
    for (const float cap : {0.0f, 1.5f}) {
      std::vector<CachePage> pages(3, CachePage(GetParam(), 64));
      const std::vector<int> lengths = {64, 64, 9};
      for (std::size_t i = 0; i < 3; ++i) store_random(pages[i], random, static_cast<std::size_t>(lengths[i]));
      Queries queries(random, 4, 64);
      if (GetParam() == CacheType::kQ8_0) queries.round_to_quants();
      for (std::size_t i = 0; i < 3; ++i) queries.attend(*table, pages[i], 0, lengths[i], cap);
      for (std::size_t q = 0; q < 4; ++q) {
        float* out = queries.out.data() + q * (64 + Queries::kGap);
        table->finish_attention(out, queries.states[q].sum, 64);
        const std::vector<double> expected =
            reference(pages, lengths, queries.rows.data() + q * (64 + Queries::kGap), static_cast<double>(cap));
        for (std::size_t d = 0; d < 64; ++d) ASSERT_NEAR(out[d], expected[d], 2e-6) << table->name << " cap " << cap;
      }
    }
  }
}

TEST_P(Attention, PagesAttendedApartAndFoldedInOrderGiveTheSameBits) {
  Xoshiro256 random(22);
  for (const KernelTable* table : all_tables()) {
    for (const std::size_t head_dim : head_dims({24, 64, 96})) {
      Queries together(random, 3, head_dim);
      Queries folded = together;
      const Queries fresh = together;
      for (const int length : {64, 64, 17}) {
        CachePage page(GetParam(), head_dim);
        store_random(page, random, static_cast<std::size_t>(length));
        together.attend(*table, page, 0, length);
        Queries apart = fresh;
        apart.attend(*table, page, 0, length);
        for (std::size_t q = 0; q < 3; ++q) {
          const std::size_t at = q * (head_dim + Queries::kGap);
          table->fold_attention(folded.states[q], folded.out.data() + at, apart.states[q], apart.out.data() + at, head_dim);
        }
      }
      EXPECT_EQ(folded.bits(), together.bits()) << table->name << " head_dim " << head_dim;
    }
  }
}

TEST_P(Attention, ASharpMaximumInALaterPageTakesOver) {
  for (const KernelTable* table : all_tables()) {
    CachePage low(GetParam(), 64);
    CachePage high(GetParam(), 64);
    std::vector<float> key(64, 0.0f);
    low.store(*table, 0, key, std::vector<float>(64, 5.0f));
    // Both are whole numbers of steps in either type.
    key[3] = 127.0f * 0.75f;
    high.store(*table, 0, key, std::vector<float>(64, -127.0f / 64.0f));
    Xoshiro256 random(20);
    Queries queries(random, 1, 64);
    queries.rows.assign(queries.rows.size(), 1.0f);
    queries.attend(*table, low, 0, 1);
    queries.attend(*table, high, 0, 1);
    EXPECT_FLOAT_EQ(queries.states[0].max, 95.25f);
    EXPECT_EQ(queries.states[0].sum, 1.0f);
    EXPECT_EQ(queries.out[0], -127.0f / 64.0f) << "exp(-95) is +0";
  }
}

TEST(AttentionScores, RotatedScoresDependOnTheDifferenceOfPositionsOnly) {
  constexpr std::size_t kHeadDim = 64;
  Xoshiro256 random(21);
  const std::vector<float> query = random_row(random, kHeadDim, 0.3);
  const std::vector<float> key = random_row(random, kHeadDim, 1.0);
  const auto rotated = [](std::vector<float> row, int position, RopeStyle style) {
    std::vector<float> cos(kHeadDim / 2);
    std::vector<float> sin(kHeadDim / 2);
    for (std::size_t i = 0; i < kHeadDim / 2; ++i) {
      const double angle = position * std::pow(10000.0, -2.0 * static_cast<double>(i) / kHeadDim);
      cos[i] = static_cast<float>(std::cos(angle));
      sin[i] = static_cast<float>(std::sin(angle));
    }
    scalar().rope(row.data(), cos.data(), sin.data(), kHeadDim, style);
    return row;
  };
  for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
    for (const int difference : {0, 1, 17, 300}) {
      std::vector<double> scores;
      for (const int position : {0, 1, 50, 1000}) {
        const std::vector<float> q = rotated(query, position + difference, style);
        const std::vector<float> k = rotated(key, position, style);
        double score = 0.0;
        for (std::size_t d = 0; d < kHeadDim; ++d) score += static_cast<double>(q[d]) * static_cast<double>(k[d]);
        scores.push_back(score);
      }
      for (const double score : scores) EXPECT_NEAR(score, scores[0], 1e-5) << difference;
    }
  }
}

}  // namespace
}  // namespace quench
