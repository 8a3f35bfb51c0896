#include "engine/batch_file.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace quench {
namespace {

std::string complaint(const std::string& line) {
  try {
    (void)read_batch_request(line, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadRequest);
    return error.what();
  }
  return "accepted";
}

TEST(BatchFile, ReadsARequestOverTheDefaults) {
  SamplerSettings defaults;
  defaults.temperature = 0.5;
  defaults.top_p = 0.9;
  const auto request = read_batch_request(
      R"({"id": "a-1", "prompt": "Once", "max_tokens": 7, "stop": ["\n", "."], "top_p": 0.8, "top_k": 3, "seed": 18446744073709551615})",
      defaults);
  EXPECT_EQ(request.id_json, "\"a-1\"");
  EXPECT_EQ(request.prompt, "Once");
  EXPECT_EQ(request.max_tokens, 7u);
  EXPECT_EQ(request.stop_texts, (std::vector<std::string>{"\n", "."}));
  EXPECT_EQ(request.sampler.temperature, 0.5);
  EXPECT_EQ(request.sampler.top_p, 0.8);
  EXPECT_EQ(request.sampler.top_k, 3);
  EXPECT_EQ(request.sampler.seed, 18446744073709551615u);
  const auto chat =
      read_batch_request(R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]})", {});
  EXPECT_EQ(chat.messages, (std::vector<ChatMessage>{{Role::kSystem, "Be brief."}, {Role::kUser, "Hi"}}));
  EXPECT_EQ(chat.max_tokens, std::nullopt);
  EXPECT_EQ(chat.id_json, "null");
}

TEST(BatchFile, NothingIsIgnoredAndTheKeyIsNamed) {
  EXPECT_EQ(complaint("[1]"), "the line is no JSON object");
  EXPECT_EQ(complaint("{\"prompt\": \"a\""), "the line is no JSON object");
  EXPECT_EQ(complaint(R"({"prompt": "a", "temprature": 1})"), "\"temprature\" is no key of a request");
  EXPECT_EQ(complaint(R"({"prompt": 5})"), "\"prompt\" must be a text");
  EXPECT_EQ(complaint(R"({"prompt": "a", "max_tokens": -1})"), "\"max_tokens\" must be a whole number from 0 to 2147483647");
  EXPECT_EQ(complaint(R"({"prompt": "a", "top_k": 1.5})"), "\"top_k\" must be a whole number from 0 to 2147483647");
  EXPECT_EQ(complaint(R"({"prompt": "a", "top_p": "1"})"), "\"top_p\" must be a number");
  EXPECT_EQ(complaint(R"({"prompt": "a", "stop": [1]})"), "\"stop\" must be a text");
  EXPECT_EQ(complaint(R"({"prompt": "a", "id": [1]})"), "\"id\" must be a text, a number, true, false or null");
  EXPECT_EQ(complaint(R"({})"), "give either \"prompt\" or \"messages\"");
  EXPECT_EQ(complaint(R"({"prompt": "a", "messages": [{"role": "user", "content": "b"}]})"), "give either \"prompt\" or \"messages\"");
  for (const char* messages : {"[]", "{}", "[1]", R"([{"role": "user"}])", R"([{"role": "robot", "content": ""}])",
                               R"([{"role": "user", "content": "", "name": "x"}])"}) {
    EXPECT_NE(complaint(std::string(R"({"messages": )") + messages + "}").find("\"messages\" must be an array"), std::string::npos)
        << messages;
  }
}

TEST(BatchFile, AResultNamesItsRequest) {
  const BatchResultKey key{.line = 12, .input_hash = batch_input_hash("{\"prompt\": \"a\"}")};
  GenerationResult result;
  result.text = "b\xFF\n";
  result.finish = FinishReason::kEndToken;
  const std::string line = write_batch_result(key, "7", result);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_NE(line.find(R"("id":7,"text":"b)"), std::string::npos) << line;
  EXPECT_EQ(read_batch_result_key(line), key);
  EXPECT_EQ(read_batch_result_key(write_batch_error(key, "\"x\"", "too long")), key);
}

TEST(BatchFile, OtherLinesAreNoResults) {
  for (const char* line : {"", "{}", "[]", R"({"line": 1})", R"({"line": -1, "input": "0123456789abcdef"})",
                           R"({"line": 1, "input": "xyz"})", R"({"line": 1, "input": 5})", R"({"line": 1, "input": "0123456789abcdeg"})"}) {
    EXPECT_THROW((void)read_batch_result_key(line), Error) << line;
  }
}

}  // namespace
}  // namespace quench
