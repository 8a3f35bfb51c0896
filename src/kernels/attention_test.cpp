#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/tables_under_test.h"

namespace quench {
namespace {

constexpr F16 kGarbage{0x7E01};  // a NaN: slots that nothing was stored in

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

/// One head's keys and values for one page; unwritten slots hold NaN.
struct Page {
  std::size_t head_dim;
  std::vector<F16> keys;
  std::vector<F16> values;

  explicit Page(std::size_t dim) : head_dim(dim), keys(page_head_elements(dim), kGarbage), values(page_head_elements(dim), kGarbage) {}

  void store(const KernelTable& table, std::size_t slot, const std::vector<float>& key, const std::vector<float>& value) {
    table.store_key_f16(keys.data(), slot, key.data(), head_dim);
    table.store_value_f16(values.data(), slot, value.data(), head_dim);
  }
  void store_random(Xoshiro256& random, std::size_t slots) {
    for (std::size_t slot = 0; slot < slots; ++slot) {
      store(scalar(), slot, random_row(random, head_dim, 1.0), random_row(random, head_dim, 2.0));
    }
  }
};

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

  void attend(const KernelTable& table, const Page& page, const std::vector<int>& first, const std::vector<int>& last, float cap = 0.0f) {
    table.attend_page_f16({rows.data(), head_dim + kGap, count, head_dim, page.keys.data(), page.values.data(), first.data(), last.data(),
                           cap, states.data(), out.data(), head_dim + kGap});
  }
  void attend(const KernelTable& table, const Page& page, int first, int last, float cap = 0.0f) {
    attend(table, page, std::vector<int>(count, first), std::vector<int>(count, last), cap);
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

TEST(Attention, EveryInstructionSetGivesTheBitsOfTheDefinition) {
  Xoshiro256 random(11);
  for (const std::size_t head_dim : {8u, 16u, 24u, 40u, 64u, 72u, 80u, 96u, 128u, 256u, 512u}) {
    for (int round = 0; round < 6; ++round) {
      const std::size_t n = 1 + random.below(15);
      const Queries start(random, n, head_dim);
      Queries expected = start;
      std::vector<Queries> actual(tables_under_test().size(), start);
      const float cap = round % 3 == 2 ? 2.0f : 0.0f;
      for (int page_index = 0; page_index < 3; ++page_index) {
        Page page(head_dim);
        const std::size_t length = 1 + random.below(kPagePositions);
        page.store_random(random, length);
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

TEST(Attention, CausalBlocksAndWindowsGiveTheBitsOfTheDefinition) {
  constexpr std::size_t kHeadDim = 64;
  constexpr std::size_t kGroup = 3;
  Xoshiro256 random(12);
  Page page(kHeadDim);
  page.store_random(random, kPagePositions);
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

TEST(Attention, StoresAreTheSameOnEveryInstructionSetAndTouchOnlyTheirSlot) {
  Xoshiro256 random(13);
  for (const std::size_t head_dim : {8u, 24u, 64u, 96u, 128u}) {
    for (const KernelTable* table : tables_under_test()) {
      Page expected(head_dim);
      Page actual(head_dim);
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

TEST(Attention, KeysLieInStripsOf16PositionsAndValuesInRows) {
  constexpr std::size_t kHeadDim = 24;
  Page page(kHeadDim);
  std::vector<float> row(kHeadDim);
  for (std::size_t d = 0; d < kHeadDim; ++d) row[d] = static_cast<float>(d);
  row[23] = 1e30f;
  page.store(scalar(), 37, row, row);
  EXPECT_EQ(page.keys[(2 * kHeadDim + 7) * 16 + 5], to_f16(7.0f));
  EXPECT_EQ(page.keys[(2 * kHeadDim + 23) * 16 + 5], to_f16(65504.0f));
  EXPECT_EQ(page.values[37 * kHeadDim + 9], to_f16(9.0f));
  EXPECT_EQ(page.values[36 * kHeadDim + 9], kGarbage);
  EXPECT_EQ(page.keys[(2 * kHeadDim + 7) * 16 + 6], kGarbage);
}

TEST(Attention, OneCachedPositionReturnsItsValue) {
  Xoshiro256 random(14);
  for (const KernelTable* table : all_tables()) {
    Page page(64);
    std::vector<float> value = random_row(random, 64, 2.0);
    for (float& v : value) v = to_f32(to_f16(v));
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

TEST(Attention, AQuerysResultIsTheSameWhetherItsPageIsFullOrHalfFull) {
  Xoshiro256 random(15);
  for (const KernelTable* table : all_tables()) {
    for (const int length : {1, 15, 16, 17, 32, 47, 63}) {
      Xoshiro256 page_random(99);
      Page full(128);
      full.store_random(page_random, kPagePositions);
      page_random = Xoshiro256(99);
      Page part(128);
      part.store_random(page_random, static_cast<std::size_t>(length));
      Queries in_full(random, 5, 128);
      Queries in_part = in_full;
      in_full.attend(*table, full, 0, length);
      in_part.attend(*table, part, 0, length);
      EXPECT_EQ(in_full.bits(), in_part.bits()) << table->name << " length " << length;
    }
  }
}

TEST(Attention, AQuerysResultIsTheSameAloneOrAmongMany) {
  Xoshiro256 random(16);
  for (const KernelTable* table : all_tables()) {
    for (const std::size_t n : {2u, 5u, 7u, 13u, 30u}) {
      Page page(96);
      page.store_random(random, 50);
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

TEST(Attention, WhatLiesOutsideTheVisibleSlotsChangesNothing) {
  Xoshiro256 random(17);
  for (const KernelTable* table : all_tables()) {
    Page clean(64);
    clean.store_random(random, kPagePositions);
    for (const F16 pattern : {F16{0x7E00}, F16{0x7C00}, F16{0xFC00}, F16{0x7BFF}, F16{0x0001}, F16{0xFFFF}}) {
      Page dirty = clean;
      for (std::size_t slot = 0; slot < kPagePositions; ++slot) {
        if (slot >= 10 && slot < 41) continue;
        for (std::size_t d = 0; d < 64; ++d) {
          dirty.keys[(slot / 16 * 64 + d) * 16 + slot % 16] = pattern;
          dirty.values[slot * 64 + d] = pattern;
        }
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

TEST(Attention, APageWithoutVisibleSlotsIsSkipped) {
  Xoshiro256 random(18);
  for (const KernelTable* table : all_tables()) {
    Page page(64);
    page.store_random(random, 20);
    Queries queries(random, 4, 64);
    queries.attend(*table, page, 0, 20);
    const std::vector<std::uint32_t> before = queries.bits();
    queries.attend(*table, page, 20, 20);
    queries.attend(*table, page, 30, 10);
    EXPECT_EQ(queries.bits(), before) << table->name;
  }
}

/// Softmax attention in double over the stored keys and values of all pages.
std::vector<double> reference(const std::vector<Page>& pages, const std::vector<int>& lengths, const float* query, double cap) {
  const std::size_t head_dim = pages[0].head_dim;
  std::vector<double> out(head_dim, 0.0);
  double sum = 0.0;
  for (std::size_t page = 0; page < pages.size(); ++page) {
    for (std::size_t slot = 0; slot < static_cast<std::size_t>(lengths[page]); ++slot) {
      double score = 0.0;
      for (std::size_t d = 0; d < head_dim; ++d) {
        score += static_cast<double>(query[d]) * static_cast<double>(to_f32(pages[page].keys[(slot / 16 * head_dim + d) * 16 + slot % 16]));
      }
      if (cap > 0.0) score = cap * std::tanh(score / cap);
      const double weight = std::exp(score);
      sum += weight;
      for (std::size_t d = 0; d < head_dim; ++d) out[d] += weight * static_cast<double>(to_f32(pages[page].values[slot * head_dim + d]));
    }
  }
  for (double& value : out) value /= sum;
  return out;
}

TEST(Attention, PagesTogetherAreSoftmaxOverAllTheirPositions) {
  Xoshiro256 random(19);
  for (const KernelTable* table : all_tables()) {
    for (const float cap : {0.0f, 1.5f}) {
      std::vector<Page> pages(3, Page(64));
      const std::vector<int> lengths = {64, 64, 9};
      for (std::size_t i = 0; i < 3; ++i) pages[i].store_random(random, static_cast<std::size_t>(lengths[i]));
      Queries queries(random, 4, 64);
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

TEST(Attention, ASharpMaximumInALaterPageTakesOver) {
  for (const KernelTable* table : all_tables()) {
    Page low(64);
    Page high(64);
    std::vector<float> key(64, 0.0f);
    low.store(*table, 0, key, std::vector<float>(64, 5.0f));
    key[3] = 100.0f;
    high.store(*table, 0, key, std::vector<float>(64, -2.0f));
    Xoshiro256 random(20);
    Queries queries(random, 1, 64);
    queries.rows.assign(queries.rows.size(), 1.0f);
    queries.attend(*table, low, 0, 1);
    queries.attend(*table, high, 0, 1);
    EXPECT_EQ(queries.states[0].max, 100.0f);
    EXPECT_EQ(queries.states[0].sum, 1.0f);
    EXPECT_EQ(queries.out[0], -2.0f) << "exp(-100) is +0";
  }
}

TEST(Attention, RotatedScoresDependOnTheDifferenceOfPositionsOnly) {
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
