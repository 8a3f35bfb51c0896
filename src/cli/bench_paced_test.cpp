#include "cli/bench_paced.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"

namespace quench::cli {
namespace {

std::string answers_to(const std::string& requests) {
  std::string written;
  int rounds = 0;
  const PacedSession session{.probe = [] { return std::string("P"); },
                             .round = [&] { return std::to_string(++rounds); },
                             .write = [&](const std::string& text) { written += text; }};
  std::istringstream stream(requests);
  session.serve(stream);
  return written;
}

TEST(PacedSession, EachLineHasOneLineOfAnswerUntilTheInputEnds) {
  EXPECT_EQ(answers_to("probe\nround\nround\nprobe\n"), "P\n1\n2\nP\n");
  EXPECT_EQ(answers_to(""), "");
}

TEST(PacedSession, AnUnknownRequestIsAnError) { EXPECT_THROW((void)answers_to("round\nquit\n"), Error); }

}  // namespace
}  // namespace quench::cli
