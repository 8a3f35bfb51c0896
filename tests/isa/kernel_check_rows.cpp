#include <string>
#include <vector>

#include "base/random.h"
#include "kernel_check.h"
#include "kernels/cache_page_for_test.h"

namespace quench::kernel_check {
namespace {

/// Mostly ordinary values, one in eight of any magnitude that f32 has.
std::vector<float> random_row(Xoshiro256& random, std::size_t n) {
  std::vector<float> row(n);
  for (float& value : row) {
    const double unit = random.uniform() * 2.0 - 1.0;
    value = static_cast<float>(random.below(8) == 0 ? std::ldexp(unit, static_cast<int>(random.below(270)) - 145) : unit * 12.0);
  }
  return row;
}

/// run(table, row that it changes, second row), over every length to 130 and some longer ones.
template <typename Run>
bool agrees(const char* operation, const KernelTable& kernels, const KernelTable& scalar, const Run& run) {
  Xoshiro256 random(21);
  for (std::size_t n = 1; n <= 1200; n += n < 130 ? 1 : 107) {
    const std::vector<float> x = random_row(random, n);
    const std::vector<float> y = random_row(random, n);
    std::vector<float> want = x;
    std::vector<float> got = x;
    run(scalar, want, y);
    run(kernels, got, y);
    const std::string what = std::string(operation) + " of " + std::to_string(n);
    if (!same_bits(what.c_str(), got, want)) return false;
  }
  return true;
}

bool check_rows(const KernelTable& kernels, const KernelTable& scalar) {
  using Row = std::vector<float>;
  const auto agree = [&](const char* operation, const auto& run) { return agrees(operation, kernels, scalar, run); };
  return agree("rms_norm", [](const KernelTable& t, Row& x, const Row& y) { t.rms_norm(x.data(), y.data(), x.size(), 1e-6f, x.data()); }) &&
         agree("rms_norm", [](const KernelTable& t, Row& x, const Row&) { t.rms_norm(x.data(), nullptr, x.size(), 1e-5f, x.data()); }) &&
         agree("add", [](const KernelTable& t, Row& x, const Row& y) { t.add(x.data(), y.data(), x.size()); }) &&
         agree("scale", [](const KernelTable& t, Row& x, const Row& y) { t.scale(x.data(), y[0], x.size()); }) &&
         agree("silu_mul", [](const KernelTable& t, Row& x, const Row& y) { t.silu_mul(x.data(), y.data(), x.size(), x.data()); }) &&
         agree("gelu_mul", [](const KernelTable& t, Row& x, const Row& y) { t.gelu_mul(x.data(), y.data(), x.size(), x.data()); }) &&
         agree("soft_cap", [](const KernelTable& t, Row& x, const Row&) { t.soft_cap(x.data(), 30.0f, x.size()); });
}

bool check_rope(const KernelTable& kernels, const KernelTable& scalar) {
  for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
    const auto rotate = [style](const KernelTable& t, std::vector<float>& x, const std::vector<float>& y) {
      const std::size_t pairs = x.size() / 2;
      t.rope(x.data(), y.data(), y.data() + pairs, 2 * pairs, style);
    };
    if (!agrees("rope", kernels, scalar, rotate)) return false;
  }
  return true;
}

/// Pages written and read through one table. Unwritten slots hold NaN.
struct Run {
  CachePage page;
  std::vector<AttentionState> states;
  std::vector<float> out;
};

struct Shape {
  CacheType type;
  std::size_t head_dim;
  std::size_t queries;
  std::size_t length;
  bool ragged;
  float cap;
};

void attend(const KernelTable& table, const Shape& shape, std::uint64_t seed, Run& run) {
  Xoshiro256 random(seed);
  const auto small_row = [&](std::size_t n) {
    std::vector<float> row(n);
    for (float& value : row) value = static_cast<float>(random.uniform() * 2.0 - 1.0);
    return row;
  };
  run.page = CachePage(shape.type, shape.head_dim);
  for (std::size_t slot = 0; slot < shape.length; ++slot) {
    const std::vector<float> key = small_row(shape.head_dim);
    run.page.store(table, slot, key, random_row(random, shape.head_dim));
  }
  const std::vector<float> queries = small_row(shape.queries * shape.head_dim);
  std::vector<int> first(shape.queries, 0);
  std::vector<int> last(shape.queries, static_cast<int>(shape.length));
  for (std::size_t i = 0; shape.ragged && i < shape.queries; ++i) {
    first[i] = static_cast<int>(random.below(shape.length + 1));
    last[i] = static_cast<int>(random.below(shape.length + 1));
  }
  const QuantizedQueries quantized(table, queries);
  table.cache(shape.type)
      .attend_page({.queries = queries.data(),
                    .query_stride = shape.head_dim,
                    .n_queries = shape.queries,
                    .head_dim = shape.head_dim,
                    .keys = CachePage::bytes_of(run.page.keys),
                    .values = CachePage::bytes_of(run.page.values),
                    .first = first.data(),
                    .last = last.data(),
                    .soft_cap = shape.cap,
                    .states = run.states.data(),
                    .out = run.out.data(),
                    .out_stride = shape.head_dim,
                    .query_quants = quantized.quants.data(),
                    .query_scales = quantized.scales.data()});
}

bool check_shape(const KernelTable& kernels, const KernelTable& scalar, const Shape& shape) {
  Run want{.page = CachePage(shape.type, shape.head_dim), .states = {}, .out = {}};
  want.states.assign(shape.queries, {kNoScore, 0.0f});
  want.out.assign(shape.queries * shape.head_dim, 0.0f);
  Run got = want;
  for (std::uint64_t page = 0; page < 3; ++page) {
    attend(scalar, shape, 31 + page, want);
    attend(kernels, shape, 31 + page, got);
    const std::string what = "attention, cache " + std::string(cache_type_name(shape.type)) + ", head_dim " +
                             std::to_string(shape.head_dim) + ", queries " + std::to_string(shape.queries);
    if (got.page.keys != want.page.keys || got.page.values != want.page.values) {
      std::printf("  %s: stored pages differ\n", what.c_str());
      return false;
    }
    if (!same_bits(what.c_str(), got.out, want.out)) return false;
    for (std::size_t i = 0; i < shape.queries; ++i) {
      const float got_state[] = {got.states[i].max, got.states[i].sum};
      const float want_state[] = {want.states[i].max, want.states[i].sum};
      if (!same_bits(what.c_str(), got_state, want_state)) return false;
    }
  }
  return true;
}

bool check_attention(const KernelTable& kernels, const KernelTable& scalar) {
  for (const CacheType type : kCacheTypes) {
    for (const std::size_t head_dim : {8u, 24u, 64u, 80u, 128u}) {
      if (type == CacheType::kQ8_0 && head_dim % kCacheBlockChannels != 0) continue;
      for (const std::size_t queries : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 20u}) {
        const std::size_t length = 1 + (head_dim * 7 + queries * 13) % kPagePositions;
        const bool ragged = queries % 2 == 0;
        if (!check_shape(kernels, scalar, {type, head_dim, queries, length, ragged, queries % 3 == 0 ? 2.0f : 0.0f})) return false;
      }
    }
  }
  return true;
}

const Registration kRows("rows", check_rows);
const Registration kRope("rope", check_rope);
const Registration kAttention("attention", check_attention);

}  // namespace
}  // namespace quench::kernel_check
