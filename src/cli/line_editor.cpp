#include "cli/line_editor.h"

#include <fmt/format.h>
#include <histedit.h>

#include <cstdio>
#include <iostream>
#include <utility>

#include "cli/interrupt.h"
#include "cli/terminal.h"

namespace quench::cli {
namespace {

constexpr int kHistoryLines = 1000;

}  // namespace

struct LineEditor::State {
  std::filesystem::path history_file;
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string prompt;

  static char* prompt_of(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<State*>(data)->prompt.data();
  }
};

LineEditor::LineEditor(std::filesystem::path history_file) : state_(std::make_unique<State>()) {
  state_->history_file = std::move(history_file);
  if (!stdin_is_terminal()) return;
  // The prompt and the echo go to stderr: answers alone own stdout.
  state_->editor = el_init("quench", stdin, stderr, stderr);
  state_->history = history_init();
  if (state_->editor == nullptr || state_->history == nullptr) return;
  history(state_->history, &state_->event, H_SETSIZE, kHistoryLines);
  history(state_->history, &state_->event, H_SETUNIQUE, 1);
  if (!state_->history_file.empty()) history(state_->history, &state_->event, H_LOAD, state_->history_file.c_str());
  el_set(state_->editor, EL_CLIENTDATA, state_.get());
  el_set(state_->editor, EL_PROMPT, &State::prompt_of);
  el_set(state_->editor, EL_EDITOR, "emacs");
  el_set(state_->editor, EL_HIST, history, state_->history);
  el_set(state_->editor, EL_SIGNAL, 0);
  el_source(state_->editor, nullptr);
}

LineEditor::~LineEditor() {
  if (state_->history != nullptr) {
    if (!state_->history_file.empty()) {
      std::error_code ignored;
      std::filesystem::create_directories(state_->history_file.parent_path(), ignored);
      history(state_->history, &state_->event, H_SAVE, state_->history_file.c_str());
    }
    history_end(state_->history);
  }
  if (state_->editor != nullptr) el_end(state_->editor);
}

std::optional<std::string> LineEditor::read_line(const std::string& prompt) {
  if (state_->editor == nullptr) {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
  }
  state_->prompt = prompt;
  int length = 0;
  const char* text = el_gets(state_->editor, &length);
  if (text == nullptr || length <= 0) {
    if (!interrupt_flag().load()) return std::nullopt;
    fmt::print(stderr, "\n");
    el_reset(state_->editor);
    return std::string();
  }
  std::string line(text, static_cast<std::size_t>(length));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  if (line.find_first_not_of(" \t") != std::string::npos) history(state_->history, &state_->event, H_ENTER, line.c_str());
  return line;
}

}  // namespace quench::cli
