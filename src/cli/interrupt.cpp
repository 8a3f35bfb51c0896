#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace quench::cli {
namespace {

std::atomic<bool> interrupted{false};
struct sigaction previous_action{};

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void on_interrupt(int) {
  if (interrupted.exchange(true)) ::_exit(kInterruptedExitCode);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() { ::sigaction(SIGINT, &previous_action, nullptr); }

std::atomic<bool>& interrupt_flag() noexcept { return interrupted; }

}  // namespace quench::cli
