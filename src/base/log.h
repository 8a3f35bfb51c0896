#pragma once

#include <functional>
#include <string_view>

namespace quench {

/// The log goes to stderr: answers own stdout. Levels as in spdlog; the default is warnings and above.
enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void set_log_level(LogLevel level);
/// Gives the messages to `receiver` instead of stderr, one at a time, from whichever thread has something to say; empty: stderr again. It
/// must not log, nor throw.
void set_log_receiver(std::function<void(LogLevel level, std::string_view message)> receiver);
void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);

}  // namespace quench
