#pragma once

#include <atomic>

namespace quench::cli {

/// Exit code after an interrupt, as shells use it.
inline constexpr int kInterruptedExitCode = 130;

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
