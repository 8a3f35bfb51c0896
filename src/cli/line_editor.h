#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace quench::cli {

/// Reads lines with editing and history when standard input is a terminal (libedit), plainly otherwise.
class LineEditor {
 public:
  /// `history_file` empty: no history is kept on disk.
  explicit LineEditor(std::filesystem::path history_file);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;
  ~LineEditor();

  /// One line without its end, or nothing at the end of the input. Ctrl-C gives an empty line with the interrupt flag set.
  [[nodiscard]] std::optional<std::string> read_line(const std::string& prompt);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quench::cli
