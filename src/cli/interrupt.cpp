#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "base/file.h"

namespace quench::cli {
namespace {

std::atomic<bool> interrupted{false};
struct sigaction previous_action{};

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void on_ending_signal(int signal) {
  remove_unfinished_files();
  if (signal == SIGINT) ::_exit(kInterruptedExitCode);
  // SA_RESETHAND has put the default action back; the signal comes when the handler returns.
  ::raise(signal);
}

extern "C" void on_interrupt(int signal) {
  if (interrupted.exchange(true)) on_ending_signal(signal);
}

}  // namespace

void handle_ending_signals() {
  struct sigaction action{};
  action.sa_handler = on_ending_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  ::signal(SIGXFSZ, SIG_IGN);
}

InterruptGuard::InterruptGuard() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() { ::sigaction(SIGINT, &previous_action, nullptr); }

std::atomic<bool>& interrupt_flag() noexcept { return interrupted; }

}  // namespace quench::cli
