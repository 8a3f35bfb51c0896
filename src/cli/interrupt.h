#pragma once

#include <atomic>

namespace quench::cli {

/// Exit code after an interrupt, as shells use it.
inline constexpr int kInterruptedExitCode = 130;

/// From here on a signal that ends the program removes unfinished files first: SIGINT exits with code 130, SIGTERM and SIGHUP end it as
/// they do by default. A signal that the starter ignores (nohup, a background job) stays ignored. A file that exceeds the size limit is
/// a failed write instead of SIGXFSZ.
void handle_ending_signals();

/// Catches SIGINT while alive. The first Ctrl-C sets the flag, which stops the answer but not the program; a second one, before anybody
/// cleared the flag, ends the program with exit code 130.
class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();
};

/// Set by Ctrl-C; whoever acts on it clears it.
[[nodiscard]] std::atomic<bool>& interrupt_flag() noexcept;

}  // namespace quench::cli
