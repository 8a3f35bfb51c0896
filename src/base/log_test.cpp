#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quench {
namespace {

TEST(Log, AReceiverGetsWhatTheLevelLetsThrough) {
  std::vector<std::string> received;
  set_log_receiver([&](LogLevel level, std::string_view message) {
    EXPECT_EQ(level, LogLevel::kWarning);
    received.emplace_back(message);
  });
  log_info("too quiet");
  log_warning("a {} warning");
  set_log_receiver({});
  testing::internal::CaptureStderr();
  log_warning("to stderr again");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "quench: warning: to stderr again\n");
  EXPECT_EQ(received, std::vector<std::string>{"a {} warning"});
}

}  // namespace
}  // namespace quench
