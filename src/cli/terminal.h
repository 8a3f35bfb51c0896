#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quench::cli {

/// Writes an answer to standard output and flushes: a reader on a pipe sees each piece as it comes. Throws Error(kIo) when the other
/// end is gone.
void write_answer(std::string_view text);

[[nodiscard]] bool stdout_is_terminal();
[[nodiscard]] bool stderr_is_terminal();
[[nodiscard]] bool stdin_is_terminal();

/// `text` in an ANSI style when stderr is a terminal and NO_COLOR is unset, else plain.
enum class Style { kDim, kBold, kPrompt };
[[nodiscard]] std::string styled(Style style, std::string_view text);

/// "98.4 MB"
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

/// A one-line bar on stderr; silent when stderr is no terminal. Redrawn at most 20 times a second.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label) : label_(std::move(label)) {}
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();
  void update(std::uint64_t done_bytes, std::uint64_t total_bytes);

 private:
  std::string label_;
  double last_drawn_seconds_ = -1;
  bool drawn_ = false;
};

/// Seconds on a steady clock.
[[nodiscard]] double now_seconds();

}  // namespace quench::cli
