#include "gguf/split_name.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace quench::gguf {
namespace {

constexpr std::size_t kDigits = 5;
constexpr std::string_view kSuffix = ".gguf";
constexpr std::string_view kOf = "-of-";

std::optional<std::size_t> five_digits(std::string_view text) {
  std::size_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::size_t>(c - '0');
  }
  return value;
}

}  // namespace

std::optional<SplitName> SplitName::parse(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  constexpr std::size_t kTail = 1 + kDigits + kOf.size() + kDigits + kSuffix.size();
  if (name.size() <= kTail) return std::nullopt;
  const std::string_view tail = std::string_view(name).substr(name.size() - kTail);
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !tail.ends_with(kSuffix)) return std::nullopt;
  const auto number = five_digits(tail.substr(1, kDigits));
  const auto count = five_digits(tail.substr(1 + kDigits + kOf.size(), kDigits));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return SplitName{name.substr(0, name.size() - kTail), *number, *count};
}

std::filesystem::path SplitName::part_path(const std::filesystem::path& sibling, std::size_t part_number) const {
  std::array<char, 64> tail{};
  (void)std::snprintf(tail.data(), tail.size(), "-%05zu-of-%05zu.gguf", part_number, count);
  return sibling.parent_path() / (stem + tail.data());
}

}  // namespace quench::gguf
