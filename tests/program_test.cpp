// The program as a user meets it: exit codes, what it writes where, what it refuses. A shell runs the commands, with Q as the program
// and a scratch folder that holds model.gguf, a tiny synthetic model with a context of 256.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

namespace quench {
namespace {

constexpr std::uint64_t kMostOutputBytes = 64u << 20;

struct Ran {
  int code = -1;  ///< 128 + the signal that ended it
  std::string out;
  std::string err;
};

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

class Program : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::filesystem::path(testing::TempDir()) / ("quench_program_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    ASSERT_EQ(sh("$Q synth model.gguf --context 256").code, 0);
    const gguf::Reader reader(folder_ / "model.gguf");
    gguf::Writer(folder_ / "vocabulary.gguf", reader.metadata(), {}).finish();
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static Ran sh(const std::string& command) {
    const std::string script = "cd '" + folder_.string() + "' && Q='" QUENCH_PROGRAM "' && { " + command + "\n} >.out 2>.err";
    Ran ran;
    ran.code = code_of(std::system(script.c_str()));
    ran.out = read_text((folder_ / ".out").string(), kMostOutputBytes);
    ran.err = read_text((folder_ / ".err").string(), kMostOutputBytes);
    return ran;
  }

  /// Runs the program until `file` is there, sends the signal, and gives the exit code.
  static int interrupted(std::vector<std::string> arguments, int signal, const std::filesystem::path& file) {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t defaults;
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGINT);  // whoever runs the tests in the background ignores it
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    pid_t child = 0;
    const int problem = ::posix_spawn(&child, QUENCH_PROGRAM, nullptr, &attributes, pointers.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    if (problem != 0) return -1;
    const std::filesystem::path partial = file.string() + ".partial-" + std::to_string(child);
    for (int i = 0; i < 10000 && !std::filesystem::exists(partial); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    return code_of(status);
  }

  static std::filesystem::path folder_;
};

std::filesystem::path Program::folder_;

void expect_says(const std::string& text, std::string_view part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST_F(Program, WritesIntoFifosAndThroughLinksAndToStandardOutput) {
  EXPECT_EQ(
      sh("mkfifo pipe && { cat pipe >from_pipe & } && $Q synth pipe --context 256; wait; test -p pipe && cmp from_pipe model.gguf").code,
      0);
  EXPECT_EQ(sh("ln -s linked.gguf link && $Q synth link --context 256 && test -h link && cmp linked.gguf model.gguf").code, 0);
  EXPECT_EQ(sh("$Q synth - --context 256 | cmp - model.gguf && test ! -e -").code, 0);
}

TEST_F(Program, AnInterruptLeavesNoUnfinishedFile) {
  const auto folder = folder_ / "interrupted";
  std::filesystem::create_directory(folder);
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 128 + SIGTERM}}) {
    const auto file = folder / "big.gguf";
    EXPECT_EQ(interrupted({"quench", "synth", file.string(), "--size", "8b"}, signal, file), code);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
}

TEST_F(Program, AFileThatOutgrowsTheLimitIsAFailedWrite) {
  const Ran ran = sh("ulimit -f 8; $Q synth limited.gguf");
  EXPECT_EQ(ran.code, 4);
  expect_says(ran.err, "limited.gguf: cannot write: File too large");
  EXPECT_EQ(sh("ls limited*").out, "");
}

TEST_F(Program, WhatIsNoModelFileIsRefusedWithoutWaiting) {
  for (const char* path : {"nobody_writes", ".", "/dev/zero"}) {
    const Ran ran = sh("test -p nobody_writes || mkfifo nobody_writes; timeout 20 $Q info " + std::string(path));
    EXPECT_EQ(ran.code, 3) << path;
    expect_says(ran.err, "not a regular file");
  }
  EXPECT_EQ(sh("$Q info no_such_file").code, 4);
  EXPECT_EQ(sh("$Q info ''").code, 2);
  for (const char* command : {"chat vocabulary.gguf hello", "run vocabulary.gguf -p hello"}) {
    const Ran ran = sh(std::string("$Q ") + command);
    EXPECT_EQ(ran.code, 3);
    expect_says(ran.err, "vocabulary.gguf: holds a vocabulary and no weights");
  }
}

TEST_F(Program, TextComesFromPipesToo) {
  const Ran piped = sh("printf 'abc' >text; cat text | $Q tokenize model.gguf /dev/stdin");
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_FALSE(piped.out.empty());
  EXPECT_EQ(sh("$Q tokenize model.gguf text").out, piped.out);
  EXPECT_EQ(sh("$Q tokenize model.gguf - <text").out, piped.out);
}

TEST_F(Program, AClosedStandardStreamIsNotTheModelFile) {
  const Ran chat = sh("timeout 20 $Q chat model.gguf --chat-template chatml <&-");
  EXPECT_EQ(chat.code, 0) << chat.err;
  EXPECT_EQ(chat.out, "");
  EXPECT_EQ(sh("$Q tokenize model.gguf - <&-").code, 4);
  EXPECT_EQ(sh("$Q tokenize model.gguf text >&-").code, 4);
  EXPECT_EQ(sh("printf 'abc' | $Q tokenize model.gguf - 2>&-").code, 0);
}

TEST_F(Program, AnAnswerThatNobodyGetsIsAFailure) {
  for (const char* command : {"--help", "--version", "run --help", "info"}) {
    const Ran ran = sh(std::string("$Q ") + command + " >/dev/full");
    EXPECT_EQ(ran.code, 4) << command;
    expect_says(ran.err, "No space left on device");
  }
}

TEST_F(Program, APromptBeyondTheContextIsRefusedWithBothNumbers) {
  for (const char* command : {"logits model.gguf --ids '1 2 3 4 5' -c 4", "verify model.gguf --tokens 5 -c 4"}) {
    const Ran ran = sh(std::string("$Q ") + command);
    EXPECT_EQ(ran.code, 2) << command;
    expect_says(ran.err, "5 tokens exceed the context of 4");
  }
  expect_says(sh("$Q logits model.gguf --ids 1 -c 257").err, "257 positions are asked for, but the model was trained for 256");
  EXPECT_EQ(sh("$Q verify model.gguf --hash").code, 0);  // its own prompt fits any model
}

TEST_F(Program, LogitsComparesBitsUnlessALimitIsGiven) {
  ASSERT_EQ(sh("$Q logits model.gguf --ids '1 2' --out a.f32").code, 0);
  const Ran same = sh("$Q logits model.gguf --ids '1 2' --compare a.f32");
  EXPECT_EQ(same.code, 0);
  expect_says(same.out, "PASS: all");
  const auto rewritten = [](const char* from, const char* to, std::size_t index, float value) {
    std::string bytes = read_text((folder_ / from).string(), kMostOutputBytes);
    std::memcpy(bytes.data() + index * sizeof(float), &value, sizeof(float));
    FileWriter writer(folder_ / to);
    writer.write(bytes);
    writer.commit();
  };
  float value = 0;
  std::memcpy(&value, read_text((folder_ / "a.f32").string(), kMostOutputBytes).data() + 10 * sizeof(float), sizeof(float));
  rewritten("a.f32", "b.f32", 10, std::nextafter(value, 1000.0f));
  const Ran off = sh("$Q logits model.gguf --ids '1 2' --compare b.f32");
  EXPECT_EQ(off.code, 1);
  expect_says(off.out, "FAIL: 1 of");
  expect_says(off.out, "token 10 in row 0");
  EXPECT_EQ(sh("$Q logits model.gguf --ids '1 2' --compare b.f32 --max-kl 1e-6").code, 0);
}

TEST_F(Program, LogitsRefusesComparisonsThatSayNothing) {
  ASSERT_EQ(sh("$Q logits model.gguf --ids '1 2' --out same.f32 && ln -s same.f32 alias.f32").code, 0);
  const Ran same = sh("$Q logits model.gguf --ids '2 1' --compare same.f32 --out alias.f32");
  EXPECT_EQ(same.code, 2);
  expect_says(same.err, "same file");
  for (const char* options : {"--max-kl 1", "--compare same.f32 --max-kl nan", "--compare same.f32 --max-kl -1"}) {
    EXPECT_EQ(sh(std::string("$Q logits model.gguf --ids '1 2' ") + options).code, 2) << options;
  }
  const Ran strange =
      sh("printf '\\000\\000\\300\\177' | dd of=same.f32 bs=4 seek=3 conv=notrunc 2>/dev/null; "
         "$Q logits model.gguf --ids '1 2' --compare same.f32 --max-kl 1");
  EXPECT_EQ(strange.code, 3);
  expect_says(strange.err, "same.f32: the logit of token 3 in row 0 is nan");
}

TEST_F(Program, ValuesOutsideTheirRangeAreRefusedByName) {
  struct Case {
    const char* command;
    const char* says;
  };
  constexpr std::array kCases = {
      Case{"run model.gguf -p a -n -2", "--predict: '-2'"},
      Case{"run model.gguf -p a -n 99999999999999999999", "'99999999999999999999'"},
      Case{"run model.gguf -p a --window -1", "--window"},
      Case{"run model.gguf -p a --window 99999999999", "--window"},
      Case{"run model.gguf -p a -c -5", "'-5'"},
      Case{"run model.gguf -p a --seed -2", "--seed"},
      Case{"run model.gguf -p a --streams 0", "--streams"},
      Case{"run model.gguf -p a --seed 18446744073709551616", "--seed"},
      Case{"run model.gguf -p a --stop-id 99999999", "--stop-id 99999999 is outside the vocabulary"},
      Case{"run model.gguf -p a --moe-expert-top-p 0.5", "the model is dense"},
      Case{"run model.gguf -p a --temp nan", "--temp"},
      Case{"run model.gguf -p a --top-k -1", "--top-k is -1"},
      Case{"run model.gguf -p a --typical 2", "--typical is 2"},
      Case{"run model.gguf -p a --mirostat-lr -1", "--mirostat-lr is -1"},
      Case{"run model.gguf -p a --samplers foo", "--samplers: there is no 'foo'"},
      Case{"run model.gguf -p ''", "the prompt is empty"},
      Case{"logits model.gguf --ids '1 99999999'", "token id 99999999 (number 2 of 2) is outside the vocabulary"},
      Case{"bench model.gguf -p -5", "--n-prompt: '-5'"},
      Case{"bench model.gguf -n x", "'x' is no whole number"},
      Case{"bench model.gguf -n 2000000000 -s 1000", "lower -p, -n, -d or -s"},
      Case{"tokenize model.gguf text --pre foo", "llama-bpe"},
      Case{"detokenize model.gguf", "no ids"},
      Case{"synth x.gguf --context -1", "--context"},
      Case{"synth x.gguf --vocab-size -5", "--vocab-size"},
      Case{"synth x.gguf --seed -1", "--seed"}};
  for (const Case& each : kCases) {
    const Ran ran = sh(std::string("$Q ") + each.command);
    EXPECT_EQ(ran.code, 2) << each.command;
    expect_says(ran.err, each.says);
    EXPECT_EQ(ran.out, "");
    EXPECT_FALSE(ran.err.starts_with("seed:")) << each.command;
  }
}

TEST_F(Program, OfAnOptionGivenTwiceTheLastCounts) {
  const Ran ran = sh("$Q run model.gguf -p a -n 1 -n 3 --temp 1 --temp 0 --print-ids -v");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(std::ranges::count(ran.out, '\n'), 3);
  EXPECT_EQ(ran.err.find("seed:"), std::string::npos);
}

TEST_F(Program, StreamsAreWhatEachSeedGivesAlone) {
  const std::string run = "$Q run model.gguf -p abc -n 20 --temp 1 --print-ids --ignore-eos";
  const Ran together = sh(run + " --streams 3 --seed 8");
  EXPECT_EQ(together.code, 0) << together.err;
  std::string alone;
  for (int i = 0; i < 3; ++i) {
    const std::string seed = std::to_string(8 + i);
    alone += "--- " + std::to_string(i + 1) + " of 3, seed " + seed + "\n" + sh(run + " --seed " + seed).out;
  }
  EXPECT_EQ(together.out, alone);
}

TEST_F(Program, HelpNamesThePositionalsAndTheDefaults) {
  const std::string help = sh("$Q chat --help").out;
  expect_says(help, "quench chat [OPTIONS] MODEL [MESSAGE]\n");
  expect_says(help, "2048 without it");
  expect_says(help, "--repeat-last-n N=64");
  EXPECT_EQ(help.find("[]"), std::string::npos) << help;
}

TEST_F(Program, AFailedSaveDoesNotEndAPipedChat) {
  const Ran ran = sh("printf '/save no/such/folder\\n/stats\\n' | $Q chat model.gguf --chat-template chatml");
  expect_says(ran.err, "no/such/folder: cannot create");
  expect_says(ran.err, "turns: 0");
  EXPECT_EQ(ran.code, 4);
}

TEST_F(Program, ErrorsAboutWhatAFileHoldsNameIt) {
  const gguf::Reader reader(folder_ / "model.gguf");
  const auto write = [&](const char* name, const gguf::Metadata& metadata) {
    gguf::Writer writer(folder_ / name, metadata, {{.name = "token_embd.weight", .format = Format::kF32, .dims = {1}}});
    writer.write(std::as_bytes(std::span("\0\0\0", 4)));
    writer.finish();
  };
  gguf::Metadata metadata = reader.metadata();
  write("no_weights.gguf", metadata);
  metadata.set("general.architecture", std::string("nonsense"));
  write("no_family.gguf", metadata);
  metadata.set("tokenizer.ggml.model", std::string("nonsense"));
  write("no_tokenizer.gguf", metadata);
  for (const auto& [command, name] :
       {std::pair{"run no_weights.gguf -p a", "no_weights.gguf: weights: "}, std::pair{"run no_family.gguf -p a", "no_family.gguf: "},
        std::pair{"tokenize no_tokenizer.gguf - </dev/null", "no_tokenizer.gguf: tokenizer.ggml.model is"}}) {
    const Ran ran = sh(std::string("$Q ") + command);
    EXPECT_EQ(ran.code, 3) << ran.err;
    expect_says(ran.err, std::string("quench: error: ") + name);
  }
}

TEST_F(Program, ABatchAnswersInOrderAndGoesOnWhereItEnded) {
  std::string requests;
  for (int i = 0; i < 20; ++i) {
    requests += "{\"id\": " + std::to_string(i) + ", \"prompt\": \"" + std::string(static_cast<std::size_t>(1 + i % 7), 'a') +
                "\", \"max_tokens\": " + std::to_string(1 + i % 5) + "}\n";
    if (i == 5) requests += "\n";
  }
  requests += "{\"id\": 20, \"prompt\": \"b\", \"max_tokens\": 1000}\n{\"id\": 21, \"promt\": \"b\"}\nno json\n";
  FileWriter writer(folder_ / "requests.jsonl");
  writer.write(requests);
  writer.commit();
  const Ran whole = sh("$Q batch model.gguf requests.jsonl --out whole.jsonl && echo done; cat whole.jsonl");
  EXPECT_EQ(whole.out.find("done"), std::string::npos) << "the failed requests show in the exit code";
  expect_says(whole.err, "3 of 23 requests failed");
  EXPECT_EQ(std::ranges::count(whole.out, '\n'), 23);
  expect_says(whole.out, "{\"line\":1,\"input\":\"");
  expect_says(whole.out, "\"id\":20,\"error\":\"1 prompt tokens and 1000 new ones exceed the context of 256\"");
  expect_says(whole.out, "\"id\":null,\"error\":\"\\\"promt\\\" is no key of a request\"");
  expect_says(whole.out, "\"error\":\"the line is no JSON object\"");
  // A kill leaves whole lines and a part of one.
  EXPECT_EQ(sh("head -n 7 whole.jsonl >cut.jsonl && printf '{\"line\":9,\"inp' >>cut.jsonl").code, 0);
  const Ran again =
      sh("$Q batch model.gguf requests.jsonl --out cut.jsonl --parallel 3 -t 1; "
         "for f in whole cut; do sed 's/\"cached_tokens\":[0-9]*//' $f.jsonl >$f.plain; done; cmp whole.plain cut.plain");
  expect_says(again.err, "7 of 23 results are there already");
  EXPECT_EQ(again.code, 0);
  const Ran other = sh("sed 's/aaa/bbb/' requests.jsonl | $Q batch model.gguf - --out whole.jsonl");
  EXPECT_EQ(other.code, 3);
  expect_says(other.err, "is of another input");
  EXPECT_EQ(sh("$Q batch model.gguf requests.jsonl --out whole.jsonl").code, 0);
}

}  // namespace
}  // namespace quench
