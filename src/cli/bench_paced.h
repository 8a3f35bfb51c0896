#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace quench::cli {

/// Answers requests, one a line: `probe` and `round` call what they name and write its JSON as one line. Ends with the input. Throws
/// Error(kBadRequest) for any other line.
struct PacedSession {
  std::function<std::string()> probe;
  std::function<std::string()> round;
  std::function<void(const std::string&)> write;

  void serve(std::istream& requests) const;
};

}  // namespace quench::cli
