#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace quench::gguf {

/// The name of one part of a split model: "<stem>-00002-of-00005.gguf". Numbers start at 1.
struct SplitName {
  std::string stem;
  std::size_t number = 0;
  std::size_t count = 0;

  /// Nothing when the name has another form, or numbers that contradict each other.
  [[nodiscard]] static std::optional<SplitName> parse(const std::filesystem::path& path);
  /// The path of another part, in the same directory as `sibling`.
  [[nodiscard]] std::filesystem::path part_path(const std::filesystem::path& sibling, std::size_t part_number) const;
};

}  // namespace quench::gguf
