#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <vector>

#include "base/float16.h"
#include "base/random.h"
#include "kernels/table.h"

namespace quench {

/// One head's keys and values for one page, for tests. Bytes that nothing was stored in are those of NaN in f16.
struct CachePage {
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
    bool operator==(const Line&) const = default;
  };

  CacheType type;
  std::size_t head_dim;
  std::vector<Line> keys;
  std::vector<Line> values;

  CachePage(CacheType cache_type, std::size_t dim)
      : type(cache_type), head_dim(dim), keys(page_head_bytes(type, dim) / sizeof(Line), garbage()), values(keys) {}

  static Line garbage() noexcept {
    Line line;
    for (std::size_t i = 0; i < line.bytes.size(); ++i) line.bytes[i] = i % 2 == 0 ? std::byte{0x01} : std::byte{0x7E};
    return line;
  }
  static std::byte* bytes_of(std::vector<Line>& lines) noexcept { return lines.front().bytes.data(); }
  static const std::byte* bytes_of(const std::vector<Line>& lines) noexcept { return lines.front().bytes.data(); }

  void store(const KernelTable& table, std::size_t slot, const std::vector<float>& key, const std::vector<float>& value) {
    table.cache(type).store_key(bytes_of(keys), slot, key.data(), head_dim);
    table.cache(type).store_value(bytes_of(values), slot, value.data(), head_dim);
  }

  /// Where the quant or number of a slot's channel lies, and (q8_0) its scale.
  [[nodiscard]] std::size_t key_offset(std::size_t slot, std::size_t d) const noexcept {
    if (type == CacheType::kF16) return 2 * ((slot / 16 * head_dim + d) * 16 + slot % 16);
    return ((slot / 16 * (head_dim / 2) + d / 2) * 16 + slot % 16) * 2 + d % 2;
  }
  [[nodiscard]] std::size_t value_offset(std::size_t slot, std::size_t d) const noexcept {
    return (slot * head_dim + d) * (type == CacheType::kF16 ? 2 : 1);
  }
  [[nodiscard]] std::size_t scale_offset(std::size_t slot, std::size_t d) const noexcept {
    return kPagePositions * head_dim + 2 * (d / kCacheBlockChannels * kPagePositions + slot);
  }

  [[nodiscard]] float key(std::size_t slot, std::size_t d) const noexcept { return at(keys, key_offset(slot, d), slot, d); }
  [[nodiscard]] float value(std::size_t slot, std::size_t d) const noexcept { return at(values, value_offset(slot, d), slot, d); }

  /// Overwrites all that belongs to a slot.
  void scribble(std::size_t slot, F16 pattern) noexcept {
    for (std::size_t d = 0; d < head_dim; ++d) {
      write(keys, key_offset(slot, d), pattern);
      write(values, value_offset(slot, d), pattern);
      if (type == CacheType::kQ8_0) write_half(keys, scale_offset(slot, d), pattern);
      if (type == CacheType::kQ8_0) write_half(values, scale_offset(slot, d), pattern);
    }
  }

 private:
  static F16 half_at(const std::vector<Line>& lines, std::size_t offset) noexcept {
    const std::byte* p = bytes_of(lines) + offset;
    return F16{static_cast<std::uint16_t>(std::to_integer<unsigned>(p[0]) | std::to_integer<unsigned>(p[1]) << 8)};
  }
  [[nodiscard]] float at(const std::vector<Line>& lines, std::size_t offset, std::size_t slot, std::size_t d) const noexcept {
    if (type == CacheType::kF16) return to_f32(half_at(lines, offset));
    return to_f32(half_at(lines, scale_offset(slot, d))) * static_cast<float>(std::bit_cast<std::int8_t>(bytes_of(lines)[offset]));
  }
  void write(std::vector<Line>& lines, std::size_t offset, F16 pattern) const noexcept {
    if (type == CacheType::kF16) return write_half(lines, offset, pattern);
    bytes_of(lines)[offset] = static_cast<std::byte>(pattern.bits & 0xFF);
  }
  static void write_half(std::vector<Line>& lines, std::size_t offset, F16 pattern) noexcept {
    std::byte* p = bytes_of(lines) + offset;
    p[0] = static_cast<std::byte>(pattern.bits & 0xFF);
    p[1] = static_cast<std::byte>(pattern.bits >> 8);
  }
};

/// Rows of one head each, as a q8_0 cache wants its queries.
struct QuantizedQueries {
  std::vector<std::int16_t> quants;
  std::vector<float> scales;

  QuantizedQueries(const KernelTable& table, const std::vector<float>& rows)
      : quants(rows.size()), scales(rows.size() / kCacheBlockChannels) {
    const std::size_t n = rows.size() / kCacheBlockChannels * kCacheBlockChannels;
    table.quantize_queries(rows.data(), n, quants.data(), scales.data());
  }
};

}  // namespace quench
