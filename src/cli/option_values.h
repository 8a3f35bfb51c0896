#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace quench::cli {

/// A whole number from `low` to `high`, in decimal. CLI11 itself takes -1 for an unsigned option and the nearest number for one that is
/// too large.
[[nodiscard]] CLI::Validator whole_number(std::int64_t low, std::uint64_t high);

/// A number from `low` to `high`: not NaN, and infinite only where a bound is.
[[nodiscard]] CLI::Validator number_between(double low, double high);

/// A path that is not "".
[[nodiscard]] CLI::Validator some_path();

/// Most positions, tokens or entries that an option takes: what a GGUF file can state.
inline constexpr std::uint64_t kMostPositions = 0x7FFFFFFF;

}  // namespace quench::cli
