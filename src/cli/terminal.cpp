#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace quench::cli {
namespace {

constexpr double kRedrawSeconds = 0.05;
constexpr int kBarCells = 30;

}  // namespace

void write_answer(std::string_view text) {
  // Past stdio's buffer, which does not tell how much of it an interrupted write has written. A reader that does not read must not make an
  // error of Ctrl-C.
  bool written = std::fflush(stdout) == 0;
  while (written && !text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    written = n > 0 || (n < 0 && errno == EINTR);
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (!written) throw_io(std::string("standard output: cannot write: ") + std::strerror(errno));
}

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }
bool stdin_is_terminal() { return ::isatty(STDIN_FILENO) == 1; }

std::string styled(Style style, std::string_view text) {
  if (!stderr_is_terminal() || std::getenv("NO_COLOR") != nullptr) return std::string(text);
  const char* code = "";
  switch (style) {
    case Style::kDim: code = "\x1b[2m"; break;
    case Style::kBold: code = "\x1b[1m"; break;
    case Style::kPrompt: code = "\x1b[1;32m"; break;
  }
  return fmt::format("{}{}\x1b[0m", code, text);
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

double now_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void ProgressBar::update(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  if (!stderr_is_terminal() || total_bytes == 0) return;
  const double now = now_seconds();
  if (done_bytes < total_bytes && now - last_drawn_seconds_ < kRedrawSeconds) return;
  last_drawn_seconds_ = now;
  drawn_ = true;
  const double share = static_cast<double>(std::min(done_bytes, total_bytes)) / static_cast<double>(total_bytes);
  const int full = static_cast<int>(share * kBarCells);
  fmt::print(stderr, "\r{} [{:=<{}}{: <{}}] {:3.0f} % of {}", label_, "", full, "", kBarCells - full, share * 100,
             human_bytes(total_bytes));
  std::fflush(stderr);
}

ProgressBar::~ProgressBar() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace quench::cli
