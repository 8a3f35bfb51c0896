#include "base/log.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace quench {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    // Colours only when stderr is a terminal: spdlog's automatic mode.
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(spdlog::color_mode::automatic);
    auto created = std::make_shared<spdlog::logger>("quench", std::move(sink));
    created->set_pattern("quench: %^%l%$: %v");
    created->set_level(spdlog::level::warn);
    return created;
  }();
  return *instance;
}

struct Receiver {
  std::mutex mutex;
  std::function<void(LogLevel, std::string_view)> call;
};

Receiver& receiver() {
  static Receiver instance;
  return instance;
}

void log(LogLevel level, spdlog::level::level_enum logger_level, std::string_view message) {
  if (!logger().should_log(logger_level)) return;
  const std::lock_guard lock(receiver().mutex);
  if (receiver().call) {
    receiver().call(level, message);
  } else {
    logger().log(logger_level, "{}", message);
  }
}

}  // namespace

void set_log_receiver(std::function<void(LogLevel level, std::string_view message)> call) {
  // The former one ends after the lock: its end may set another.
  {
    const std::lock_guard lock(receiver().mutex);
    std::swap(receiver().call, call);
  }
}

void set_log_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: logger().set_level(spdlog::level::debug); return;
    case LogLevel::kInfo: logger().set_level(spdlog::level::info); return;
    case LogLevel::kWarning: logger().set_level(spdlog::level::warn); return;
    case LogLevel::kError: logger().set_level(spdlog::level::err); return;
    case LogLevel::kOff: logger().set_level(spdlog::level::off); return;
  }
}

void log_debug(std::string_view message) { log(LogLevel::kDebug, spdlog::level::debug, message); }
void log_info(std::string_view message) { log(LogLevel::kInfo, spdlog::level::info, message); }
void log_warning(std::string_view message) { log(LogLevel::kWarning, spdlog::level::warn, message); }
void log_error(std::string_view message) { log(LogLevel::kError, spdlog::level::err, message); }

}  // namespace quench
