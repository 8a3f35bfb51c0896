#include "cli/option_values.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <system_error>

namespace quench::cli {
namespace {

/// Whether all of `text` is a number that `value` holds.
template <typename T>
bool parse(const std::string& text, T& value) {
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && rest == text.data() + text.size();
}

bool is_within(const std::string& text, std::int64_t low, std::uint64_t high) {
  if (text.starts_with('-')) {
    std::int64_t value = 0;
    return parse(text, value) && value >= low;
  }
  std::uint64_t value = 0;
  return parse(text, value) && value <= high && (low <= 0 || value >= static_cast<std::uint64_t>(low));
}

}  // namespace

CLI::Validator whole_number(std::int64_t low, std::uint64_t high) {
  return {[low, high](std::string& text) {
            return is_within(text, low, high) ? std::string() : fmt::format("'{}' is no whole number from {} to {}", text, low, high);
          },
          ""};
}

CLI::Validator number_between(double low, double high) {
  return {[low, high](std::string& text) {
            double value = 0;
            if (parse(text, value) && value >= low && value <= high) return std::string();
            return fmt::format("'{}' is no number from {} to {}", text, low, high);
          },
          ""};
}

CLI::Validator some_path() {
  return {[](std::string& text) { return text.empty() ? std::string("the path is empty") : std::string(); }, ""};
}

}  // namespace quench::cli
