#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/scratch_folder.h"
#include "model/synth.h"
#include "quench/quench.h"
#include "quench/quench.hpp"

namespace quench::api {
namespace {

constexpr std::size_t kContext = 512;

/// A random model of a few hundred kilobytes, written once.
const std::string& model_file() {
  struct TemporaryModel {
    ScratchFolder folder;
    std::string path = folder / "model.gguf";
    TemporaryModel() { write_synthetic_model({.family = "qwen3", .size = "tiny", .format = "q8_0", .seed = 5}, path); }
  };
  static const TemporaryModel model;
  return model.path;
}

Model tiny_model() { return Model::load(model_file(), {.threads = 1}); }

Engine tiny_engine(EngineOptions options = {}) {
  options.threads = 1;
  options.context = kContext;
  options.cache_bytes = std::uint64_t{64} << 20;
  return Engine(tiny_model(), options);
}

Request request_of(std::string prompt, std::size_t max_tokens, std::uint64_t seed = 1) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.ignore_end = true;
  request.sampling.seed = seed;
  return request;
}

std::string message_of(const std::function<void()>& action, ErrorCode code) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Library, AModelTellsWhatItIs) {
  const Model model = tiny_model();
  EXPECT_EQ(model.architecture(), "qwen3");
  EXPECT_GT(model.vocabulary_size(), 256u);
  EXPECT_GT(model.embedding_size(), 0u);
  EXPECT_FALSE(model.end_tokens().empty());
  EXPECT_EQ(version().substr(0, 2), "0.");
}

TEST(Library, TokensAndTextAreInverse) {
  const Model model = tiny_model();
  const std::string text = "Hello, w\xC3\xB6rld \xF0\x9F\x98\x80";
  EXPECT_EQ(model.detokenize(model.tokenize(text)), text);
  EXPECT_GT(model.tokenize("<|im_end|>").size(), model.tokenize("<|im_end|>", false, true).size());
  EXPECT_EQ(message_of([&] { (void)model.detokenize(std::vector<Token>{0xFFFFFFFF}); }, ErrorCode::kBadRequest).find("token id"), 0u);
}

TEST(Library, WhatCannotBeLoadedNamesTheFile) {
  EXPECT_NE(message_of([] { (void)Model::load("/no/such/model.gguf"); }, ErrorCode::kIo).find("/no/such/model.gguf"), std::string::npos);
}

TEST(Library, AnswersDoNotDependOnTheirNeighbours) {
  const Engine engine = tiny_engine();
  const std::vector<Answer> alone = tiny_engine().complete(request_of("once upon a time", 30));
  std::vector<std::jthread> threads;
  std::atomic<int> equal{0};
  for (std::uint64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      // Every second one asks the same.
      const auto answers = engine.complete(request_of(i % 2 == 0 ? "once upon a time" : "the sky is " + std::to_string(i), 30));
      if (i % 2 == 0 && answers.at(0).tokens == alone.at(0).tokens) ++equal;
    });
  }
  threads.clear();
  EXPECT_EQ(equal.load(), 4);
  EXPECT_GT(engine.stats().cached_positions, 0u);
}

TEST(Library, EventsAreTheAnswerInPieces) {
  const Engine engine = tiny_engine();
  auto request = request_of("once upon a time", 20);
  request.n_answers = 2;
  request.echo = true;
  request.top_log_probabilities = 2;
  Stream stream = engine.submit(request);
  std::vector<std::string> texts(2);
  std::size_t tokens = 0;
  while (const auto event = stream.next()) {
    texts.at(event->answer) += event->text;
    if (event->kind != Event::Kind::kToken) continue;
    ++tokens;
    ASSERT_TRUE(event->log_probabilities);
    EXPECT_EQ(event->log_probabilities->chosen.token, event->token);
    EXPECT_EQ(event->log_probabilities->top.size(), 2u);
  }
  EXPECT_EQ(tokens, 40u);
  const auto answers = stream.finish();
  ASSERT_EQ(answers.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(answers[i].text, texts[i]);
    EXPECT_EQ(answers[i].text.find("once upon a time"), 0u);
    EXPECT_EQ(answers[i].finish, Finish::kLength);
    EXPECT_EQ(answers[i].log_probabilities.size(), 20u);
  }
  EXPECT_NE(answers[0].tokens, answers[1].tokens);
  // The second answer is that of the next seed.
  EXPECT_EQ(engine.complete(request_of("once upon a time", 20, 2)).at(0).tokens, answers[1].tokens);
}

TEST(Library, AStreamMayBeCancelledOrDropped) {
  const Engine engine = tiny_engine();
  Stream stream = engine.submit(request_of("once upon a time", 400));
  (void)stream.next();
  stream.cancel();
  std::optional<Event> last;
  while (!stream.done()) {
    if (auto event = stream.next_within(std::chrono::milliseconds(100))) last = std::move(event);
  }
  ASSERT_TRUE(last);
  EXPECT_EQ(last->kind, Event::Kind::kEnd);
  EXPECT_EQ(last->finish, Finish::kCancelled);
  EXPECT_EQ(stream.finish().at(0).finish, Finish::kCancelled);
  {
    const Stream dropped = engine.submit(request_of("the sky", 400));
  }
  EXPECT_EQ(engine.complete(request_of("the sky", 5)).at(0).tokens.size(), 5u);
}

TEST(Library, AnAnswerThatFailsSaysSoAtItsEndAndFinishThrowsWhy) {
  const Engine engine = tiny_engine();
  Request request = request_of("once upon a time", 20);
  request.n_answers = 2;
  for (Token token = 0; token < engine.model().vocabulary_size(); ++token) request.sampling.logit_bias.push_back({token, -INFINITY});
  Stream stream = engine.submit(request);
  std::size_t failed = 0;
  while (const auto event = stream.next()) failed += event->kind == Event::Kind::kEnd && event->finish == Finish::kFailed ? 1 : 0;
  EXPECT_EQ(failed, 2u);
  EXPECT_NE(message_of([&] { (void)stream.finish(); }, ErrorCode::kBadRequest), "");
}

TEST(Library, ImpossibleRequestsAreRefusedAtOnce) {
  const Engine engine = tiny_engine();
  const auto refused = [&](const Request& request) { return message_of([&] { (void)engine.submit(request); }, ErrorCode::kBadRequest); };
  EXPECT_NE(refused({}).find("exactly one of prompt, prompt_tokens and messages"), std::string::npos);
  EXPECT_NE(refused(request_of("a", kContext)).find("exceed the context of 512"), std::string::npos);
  auto request = request_of("a", 5);
  request.sampling.top_p = 2.0;
  EXPECT_NE(refused(request).find("top_p"), std::string::npos);
  request = request_of("a", 5);
  request.stop = {""};
  EXPECT_NE(refused(request), "");
  request = request_of("a", 5);
  request.n_answers = 0;
  EXPECT_NE(refused(request), "");
}

TEST(Library, AConversationGoesOnAndTakesBack) {
  const Engine engine = tiny_engine();
  ConversationOptions options;
  options.sampling.seed = 3;
  options.max_tokens = 20;
  Conversation conversation(engine, options);
  std::string heard;
  const Answer answer = conversation.send("hello", [&](std::string_view text) {
    heard += text;
    return true;
  });
  EXPECT_EQ(answer.text, heard);
  EXPECT_EQ(conversation.messages().size(), 2u);
  EXPECT_EQ(conversation.send("no", [](std::string_view) { return false; }).finish, Finish::kCancelled);
  EXPECT_EQ(conversation.messages().size(), 2u);
  EXPECT_THROW(conversation.send("x", [](std::string_view) -> bool { throw std::runtime_error("mine"); }), std::runtime_error);
  EXPECT_EQ(conversation.messages().size(), 2u);

  const std::string json = conversation.to_json();
  EXPECT_EQ(conversation.undo(), "hello");
  EXPECT_EQ(conversation.undo(), std::nullopt);
  conversation.from_json(json);
  EXPECT_EQ(conversation.messages().at(1).content, answer.text);
  (void)message_of([&] { conversation.from_json("{"); }, ErrorCode::kBadFile);
  EXPECT_EQ(conversation.messages().size(), 2u);
}

TEST(Library, AConversationIsNotChangedWhileATurnIsUnderWay) {
  const Engine engine = tiny_engine();
  ConversationOptions options;
  options.max_tokens = 20;
  Conversation conversation(engine, options);
  conversation.send("first");
  std::vector<std::string> refused;
  const auto refuse = [&](const std::function<void()>& change) { refused.push_back(message_of(change, ErrorCode::kBadRequest)); };
  conversation.send("second", [&](std::string_view) {
    if (!refused.empty()) return true;
    refuse([&] { conversation.send("third"); });
    refuse([&] { conversation.regenerate(); });
    refuse([&] { conversation.undo(); });
    refuse([&] { conversation.reset(); });
    refuse([&] { conversation.from_json(conversation.to_json()); });
    return true;
  });
  ASSERT_EQ(refused.size(), 5u);
  EXPECT_TRUE(refused.front().starts_with("a turn of this conversation is under way")) << refused.front();
  EXPECT_EQ(conversation.messages().size(), 4u);
  EXPECT_EQ(conversation.undo(), "second");
}

TEST(Library, ATurnTellsOfItsPromptAndEndsWhenItsTimeIsUp) {
  const Engine engine = tiny_engine();
  ConversationOptions options;
  options.max_tokens = 20;
  std::vector<std::size_t> done;
  std::size_t prompt_tokens = 0;
  Conversation conversation(engine, options);
  const Answer answer = conversation.send("hello", {}, [&](std::size_t so_far, std::size_t total) {
    done.push_back(so_far);
    prompt_tokens = total;
    return true;
  });
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), prompt_tokens);
  EXPECT_EQ(prompt_tokens, answer.prompt_tokens);
  EXPECT_EQ(conversation.send("no", {}, [](std::size_t, std::size_t) { return false; }).finish, Finish::kCancelled);
  options.timeout_seconds = 1e-9;
  EXPECT_EQ(Conversation(engine, options).send("hello").finish, Finish::kTimeout);
}

TEST(Library, RareWaysToSampleAreTakenAndCheckedByName) {
  const Engine engine = tiny_engine();
  const auto refused = [&](const std::function<void(Sampling&)>& change) {
    Request request = request_of("once", 5);
    change(request.sampling);
    return message_of([&] { (void)engine.submit(request); }, ErrorCode::kBadRequest);
  };
  EXPECT_TRUE(refused([](Sampling& sampling) { sampling.typical_p = 2.0; }).starts_with("typ_p"));
  EXPECT_TRUE(refused([](Sampling& sampling) { sampling.mirostat = 1; }).starts_with("mirostat"));
  EXPECT_NE(refused([](Sampling& sampling) { sampling.samplers = "top_k;luck"; }).find("luck"), std::string::npos);
  EXPECT_NE(refused([](Sampling& sampling) {
              sampling.dry_multiplier = 1.0;
              sampling.dry_breakers = {""};
            }),
            "");
  Request plain = request_of("once upon a time", 60);
  plain.sampling.temperature = 0.0;
  Request dry = plain;
  dry.sampling.dry_multiplier = 100.0;
  dry.sampling.dry_allowed_length = 1;
  dry.sampling.dry_penalty_last_n = -1;
  dry.sampling.dry_breakers.emplace();
  EXPECT_NE(engine.complete(dry).at(0).tokens, engine.complete(plain).at(0).tokens);
}

TEST(Library, AnEmbeddingHasLengthOneAndDependsOnItsTextAlone) {
  const Engine engine = tiny_engine();
  const auto a = engine.embed("a text");
  const auto b = engine.embed("another text");
  EXPECT_EQ(a.size(), engine.model().embedding_size());
  EXPECT_NEAR(std::inner_product(a.begin(), a.end(), a.begin(), 0.0), 1.0, 1e-5);
  EXPECT_NE(a, b);
  EXPECT_EQ(engine.embed("a text"), a);
  (void)message_of([&] { (void)engine.embed(std::string(5000, 'x')); }, ErrorCode::kBadRequest);
}

TEST(Library, WarningsGoToWhomTheProgramNames) {
  std::vector<std::string> received;
  on_warning([&](std::string_view message) { received.emplace_back(message); });
  log_warning("to C++");
  quench_on_warning([](const char* message, void* user) { static_cast<std::vector<std::string>*>(user)->emplace_back(message); },
                    &received);
  log_warning("to C");
  EXPECT_EQ(quench_on_warning(nullptr, nullptr), QUENCH_OK);
  EXPECT_EQ(received, (std::vector<std::string>{"to C++", "to C"}));
}

TEST(Library, APretokenizerThatThereIsNotIsRefusedWithThoseThatThereAre) {
  const std::string message = message_of([] { (void)Model::load(model_file(), {.pretokenizer = "nonsense"}); }, ErrorCode::kBadRequest);
  EXPECT_NE(message.find("qwen2"), std::string::npos) << message;
  EXPECT_GT(Model::load(model_file(), {.threads = 1, .pretokenizer = "gpt-2"}).tokenize("a text").size(), 0u);
}

TEST(Library, NumbersThatMeanNothingAreRefusedByName) {
  const auto refused = [](const std::function<void()>& action) { return message_of(action, ErrorCode::kBadRequest); };
  EXPECT_TRUE(refused([] { (void)Model::load(model_file(), {.threads = -1}); }).starts_with("threads is -1"));
  EXPECT_TRUE(refused([] { Engine(tiny_model(), {.threads = 5000}); }).starts_with("threads is 5000"));
  EXPECT_TRUE(refused([] { Engine(tiny_model(), {.max_running = 0}); }).starts_with("EngineOptions::max_running is 0"));
  EXPECT_TRUE(refused([] { Engine(tiny_model(), {.cache_type = static_cast<CacheType>(7)}); }).starts_with("EngineOptions::cache_type"));
  EXPECT_TRUE(
      refused([] { (void)tiny_model().chat_tokens(std::vector<Message>{{static_cast<Role>(7), "x"}}); }).starts_with("a message's role"));
  EXPECT_TRUE(refused([] {
                (void)tiny_model().chat_tokens(std::vector<Message>{{Role::kUser, "x"}}, static_cast<Thinking>(7));
              }).starts_with("thinking"));
  EXPECT_TRUE(refused([] { Engine(tiny_model(), {.saved_cache = "x", .saved_cache_bytes = 5}); }).find("saved_cache_bytes is 5") !=
              std::string::npos);
  const Engine engine = tiny_engine();
  const auto with = [&](const std::function<void(Request&)>& change) {
    Request request = request_of("once", 5);
    change(request);
    return refused([&] { (void)engine.submit(request); });
  };
  EXPECT_TRUE(with([](Request& request) { request.n_answers = 0; }).starts_with("n_answers is 0"));
  EXPECT_TRUE(with([](Request& request) { request.max_tokens = 0; }).starts_with("max_tokens is 0"));
  EXPECT_TRUE(with([](Request& request) { request.timeout_seconds = -1; }).starts_with("timeout_seconds is -1"));
  EXPECT_TRUE(with([](Request& request) { request.stop_tokens = {1u << 30}; }).starts_with("stop_tokens: "));
  Stream stream = engine.submit(request_of("once", 5));
  EXPECT_EQ(stream.finish().at(0).tokens.size(), 5u);
  EXPECT_TRUE(refused([&] { (void)stream.finish(); }).starts_with("Stream::finish"));
}

TEST(Library, AScoreIsWhatAnAnswerWithTheSameTokensWasGiven) {
  const Engine engine = tiny_engine();
  Request request;
  request.prompt_tokens = engine.model().tokenize("a prompt of some tokens");
  request.max_tokens = 40;
  request.ignore_end = true;
  request.sampling.seed = 3;
  request.top_log_probabilities = 2;
  const Answer answer = engine.complete(request).at(0);
  std::vector<Token> tokens = request.prompt_tokens;
  tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
  const auto scores = engine.score(tokens, 2);
  ASSERT_EQ(scores.size(), tokens.size() - 1);
  for (std::size_t i = 0; i < answer.tokens.size(); ++i) {
    const auto& scored = scores[scores.size() - answer.tokens.size() + i];
    const auto& drawn = answer.log_probabilities[i];
    EXPECT_EQ(scored.chosen.token, answer.tokens[i]);
    EXPECT_EQ(scored.chosen.log_probability, drawn.chosen.log_probability);
    EXPECT_EQ(scored.top.at(1).token, drawn.top.at(1).token);
  }
  EXPECT_TRUE(engine.score(std::vector<Token>{1}).empty());
  (void)message_of([&] { (void)engine.score({}); }, ErrorCode::kBadRequest);
  (void)message_of([&] { (void)engine.score(std::vector<Token>(kContext + 1, 1)); }, ErrorCode::kBadRequest);
  (void)message_of([&] { (void)engine.score(std::vector<Token>{1, 0xFFFFFFFF}); }, ErrorCode::kBadRequest);
}

TEST(Library, APromptsLogProbabilitiesComeWithItsAnswer) {
  const Engine engine = tiny_engine();
  auto request = request_of("a prompt of some tokens, and of some more", 5);
  (void)engine.complete(request);  // what is cached makes no difference
  const auto tokens = engine.model().tokenize(request.prompt);
  const auto scores = engine.score(tokens, 2);
  request.n_answers = 2;
  request.echo = true;
  request.prompt_log_probabilities = 2;
  Stream stream = engine.submit(request);
  std::size_t told = 0;
  while (const auto event = stream.next()) {
    EXPECT_TRUE(event->kind == Event::Kind::kPrompt || event->prompt_log_probabilities.empty());
    for (const auto& one : event->prompt_log_probabilities) EXPECT_EQ(one.chosen.token, tokens.at(++told));
  }
  EXPECT_EQ(told, tokens.size() - 1);
  for (const Answer& answer : stream.finish()) {
    ASSERT_EQ(answer.prompt_log_probabilities.size(), scores.size());
    EXPECT_EQ(answer.cached_tokens, 0u);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      EXPECT_EQ(answer.prompt_log_probabilities[i].chosen.token, tokens[i + 1]);
      EXPECT_EQ(answer.prompt_log_probabilities[i].chosen.log_probability, scores[i].chosen.log_probability);
      EXPECT_EQ(answer.prompt_log_probabilities[i].top.at(1).token, scores[i].top.at(1).token);
    }
  }
  request.prompt_log_probabilities.reset();
  EXPECT_TRUE(engine.complete(request).at(0).prompt_log_probabilities.empty());
}

TEST(Library, ASavedCacheServesTheNextEngine) {
  const ScratchFolder folder;
  EngineOptions options;
  options.saved_cache = folder / "cache";
  std::string prompt;
  for (int i = 0; i < 100; ++i) prompt += "word " + std::to_string(i) + " ";
  prompt.resize(400);
  Answer first;
  {
    const Engine engine = tiny_engine(options);
    first = engine.complete(request_of(prompt, 10)).at(0);
    EXPECT_EQ(first.cached_tokens, 0u);
    engine.save_cache();
  }
  const Answer second = tiny_engine(options).complete(request_of(prompt, 10)).at(0);
  EXPECT_EQ(second.cached_tokens, second.prompt_tokens - 1);
  EXPECT_EQ(second.tokens, first.tokens);
}

TEST(Library, StreamsAndConversationsKeepTheirEngine) {
  std::optional<Stream> stream;
  std::optional<Conversation> conversation;
  {
    const Engine engine = tiny_engine();
    stream.emplace(engine.submit(request_of("once", 50)));
    conversation.emplace(engine, ConversationOptions{.max_tokens = 5});
  }
  EXPECT_EQ(stream->finish().at(0).tokens.size(), 50u);
  EXPECT_FALSE(conversation->send("hello").tokens.empty());
}

/// Frees what the C functions gave.
struct CHandles {
  quench_model* model = nullptr;
  quench_engine* engine = nullptr;
  quench_stream* stream = nullptr;
  quench_conversation* conversation = nullptr;

  CHandles() {
    quench_model_options model_options;
    quench_model_options_init(&model_options);
    model_options.threads = 1;
    EXPECT_EQ(quench_model_load(model_file().c_str(), &model_options, &model), QUENCH_OK) << quench_last_error();
    quench_engine_options options;
    quench_engine_options_init(&options);
    options.threads = 1;
    options.context = kContext;
    options.cache_bytes = std::uint64_t{64} << 20;
    EXPECT_EQ(quench_engine_new(model, &options, &engine), QUENCH_OK) << quench_last_error();
  }
  CHandles(const CHandles&) = delete;
  CHandles& operator=(const CHandles&) = delete;
  ~CHandles() {
    // The order does not matter.
    quench_model_free(model);
    quench_engine_free(engine);
    quench_stream_free(stream);
    quench_conversation_free(conversation);
  }
};

/// request_of("once upon a time", 20), but for the sampling.
quench_request c_request(const quench_sampling& sampling) {
  quench_request request;
  quench_request_init(&request);
  request.prompt = "once upon a time";
  request.max_tokens = 20;
  request.ignore_end = 1;
  request.sampling = &sampling;
  return request;
}

TEST(CLibrary, GivesWhatTheCppLibraryGives) {
  CHandles c;
  quench_sampling sampling;
  quench_sampling_init(&sampling);
  sampling.has_seed = 1;
  sampling.seed = 1;
  quench_request request = c_request(sampling);
  request.top_log_probabilities = 2;
  ASSERT_EQ(quench_engine_submit(c.engine, &request, &c.stream), QUENCH_OK) << quench_last_error();
  quench_event event{};
  event.struct_size = sizeof(event);
  std::string text;
  std::size_t tokens = 0;
  quench_status status = QUENCH_OK;
  while ((status = quench_stream_next(c.stream, &event)) == QUENCH_OK) {
    text.append(event.text, event.text_bytes);
    if (event.kind != QUENCH_EVENT_TOKEN) continue;
    ++tokens;
    ASSERT_NE(event.chosen, nullptr);
    EXPECT_EQ(event.chosen->token, event.token);
    EXPECT_EQ(event.n_top, 2u);
  }
  EXPECT_EQ(status, QUENCH_END);
  EXPECT_EQ(tokens, 20u);
  quench_answer answer{};
  answer.struct_size = sizeof(answer);
  ASSERT_EQ(quench_stream_answer(c.stream, 0, &answer), QUENCH_OK) << quench_last_error();
  const auto expected = tiny_engine().complete(request_of("once upon a time", 20)).at(0);
  EXPECT_EQ(std::vector<Token>(answer.tokens, answer.tokens + answer.n_tokens), expected.tokens);
  EXPECT_EQ(std::string(answer.text, answer.text_bytes), expected.text);
  EXPECT_EQ(text, expected.text);
  EXPECT_EQ(answer.finish, QUENCH_FINISH_LENGTH);
  EXPECT_EQ(quench_stream_answer(c.stream, 1, &answer), QUENCH_BAD_REQUEST);
  quench_engine_stats stats{};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(quench_engine_get_stats(c.engine, &stats), QUENCH_OK);
  EXPECT_GT(stats.prompt_tokens, 0u);
}

TEST(CLibrary, ErrorsHaveACodeAndATextOfTheirThread) {
  quench_model* model = nullptr;
  EXPECT_EQ(quench_model_load("/no/such/file", nullptr, &model), QUENCH_IO);
  EXPECT_NE(std::string(quench_last_error()).find("/no/such/file"), std::string::npos);
  std::jthread([] { EXPECT_STREQ(quench_last_error(), ""); }).join();
  EXPECT_EQ(quench_model_load(nullptr, nullptr, &model), QUENCH_BAD_REQUEST);
  EXPECT_EQ(model, nullptr);
  quench_model_free(nullptr);
  quench_engine_free(nullptr);
  quench_stream_free(nullptr);
  quench_conversation_free(nullptr);
}

TEST(CLibrary, NullHandlesAreRefusedOrDoNothing) {
  EXPECT_EQ(quench_model_architecture(nullptr), nullptr);
  EXPECT_EQ(quench_model_vocabulary_size(nullptr), 0u);
  EXPECT_EQ(quench_model_trained_context(nullptr), 0u);
  EXPECT_EQ(quench_model_embedding_size(nullptr), 0u);
  EXPECT_EQ(quench_engine_context(nullptr), 0u);
  quench_stream_cancel(nullptr);
  quench_conversation_cancel(nullptr);
  EXPECT_EQ(quench_conversation_reset(nullptr), QUENCH_BAD_REQUEST);
  EXPECT_EQ(quench_stream_next(nullptr, nullptr), QUENCH_BAD_REQUEST);
  EXPECT_EQ(quench_engine_save_cache(nullptr), QUENCH_BAD_REQUEST);
}

TEST(CLibrary, RareWaysToSampleAndReferencesGiveWhatTheCppLibraryGives) {
  CHandles c;
  const char* const breakers[] = {"."};
  const char* const references[] = {"once upon a time there was a model"};
  quench_sampling sampling;
  quench_sampling_init(&sampling);
  sampling.has_seed = 1;
  sampling.seed = 1;
  sampling.dry_multiplier = 5.0;
  sampling.dry_allowed_length = 1;
  sampling.dry_breakers = breakers;
  sampling.n_dry_breakers = 1;
  sampling.top_n_sigma = 1.5;
  sampling.repeat_last_n = -1;
  sampling.repeat_penalty = 1.3;
  sampling.samplers = "penalties;dry;top_n_sigma;temperature";
  quench_request request = c_request(sampling);
  request.references = references;
  request.n_references = 1;
  ASSERT_EQ(quench_engine_submit(c.engine, &request, &c.stream), QUENCH_OK) << quench_last_error();
  quench_answer answer{};
  answer.struct_size = sizeof(answer);
  ASSERT_EQ(quench_stream_answer(c.stream, 0, &answer), QUENCH_OK) << quench_last_error();
  Request same = request_of("once upon a time", 20);
  same.sampling.dry_multiplier = 5.0;
  same.sampling.dry_allowed_length = 1;
  same.sampling.dry_breakers = {"."};
  same.sampling.top_n_sigma = 1.5;
  same.sampling.repeat_last_n = -1;
  same.sampling.repeat_penalty = 1.3;
  same.sampling.samplers = "penalties;dry;top_n_sigma;temperature";
  EXPECT_EQ(std::vector<Token>(answer.tokens, answer.tokens + answer.n_tokens), tiny_engine().complete(same).at(0).tokens);
}

TEST(CLibrary, StructsOfAnOlderHeaderAreTakenAndUnfilledOnesRefused) {
  CHandles c;
  quench_request request;
  quench_request_init(&request);
  request.prompt = "once";
  request.max_tokens = 3;
  request.struct_size = offsetof(quench_request, speculate);
  EXPECT_EQ(quench_engine_submit(c.engine, &request, &c.stream), QUENCH_OK) << quench_last_error();
  quench_stream* none = nullptr;
  request.struct_size = 0;
  EXPECT_EQ(quench_engine_submit(c.engine, &request, &none), QUENCH_BAD_REQUEST);
  EXPECT_NE(std::string(quench_last_error()).find("struct_size"), std::string::npos);
  request.struct_size = sizeof(request) + 1;
  EXPECT_EQ(quench_engine_submit(c.engine, &request, &none), QUENCH_BAD_REQUEST);
  EXPECT_EQ(none, nullptr);
  // The older program's struct is shorter, and what lies behind it is its own.
  alignas(quench_request) unsigned char older[sizeof(quench_request)];
  std::memset(older, 0xAB, sizeof(older));
  constexpr std::size_t kOlder = offsetof(quench_request, sampling);
  quench_request_init_sized(reinterpret_cast<quench_request*>(older), kOlder);
  for (std::size_t i = kOlder; i < sizeof(older); ++i) ASSERT_EQ(older[i], 0xAB) << i;
  // An answer of which only the text is asked for.
  struct {
    quench_answer answer;
  } small{};
  small.answer.struct_size = offsetof(quench_answer, tokens);
  small.answer.n_tokens = 99;
  EXPECT_EQ(quench_stream_answer(c.stream, 0, &small.answer), QUENCH_OK);
  EXPECT_EQ(small.answer.n_tokens, 99u);
}

TEST(CLibrary, AResultThatCannotBeGivenIsRefusedBeforeAnythingIsDone) {
  CHandles c;
  ASSERT_EQ(quench_conversation_new(c.engine, nullptr, &c.conversation), QUENCH_OK);
  quench_answer unset{};
  EXPECT_EQ(quench_conversation_send(c.conversation, "hello", nullptr, nullptr, &unset), QUENCH_BAD_REQUEST);
  EXPECT_EQ(quench_conversation_send(c.conversation, nullptr, nullptr, nullptr, nullptr), QUENCH_BAD_REQUEST);
  EXPECT_EQ(quench_conversation_undo(c.conversation), QUENCH_END) << "the turn was not taken";
  quench_request request;
  quench_request_init(&request);
  request.prompt = "once";
  request.n_answers = static_cast<size_t>(-1);
  EXPECT_EQ(quench_engine_submit(c.engine, &request, &c.stream), QUENCH_BAD_REQUEST);
  EXPECT_EQ(c.stream, nullptr);
}

TEST(CLibrary, TextsAndTokensAreHandedOver) {
  CHandles c;
  const std::string text("a\0b", 3);
  uint32_t* tokens = nullptr;
  size_t n_tokens = 0;
  ASSERT_EQ(quench_model_tokenize(c.model, text.data(), text.size(), 0, 0, &tokens, &n_tokens), QUENCH_OK) << quench_last_error();
  char* back = nullptr;
  size_t back_bytes = 0;
  ASSERT_EQ(quench_model_detokenize(c.model, tokens, n_tokens, 0, &back, &back_bytes), QUENCH_OK) << quench_last_error();
  EXPECT_EQ(std::string(back, back_bytes), text);
  quench_free(tokens);
  quench_free(back);
  std::vector<float> embedding(quench_model_embedding_size(c.model));
  EXPECT_EQ(quench_engine_embed(c.engine, "a text", embedding.data()), QUENCH_OK);
  const std::array<std::uint32_t, 3> scored = {1, 2, 3};
  std::array<float, 2> scores = {1.0f, 1.0f};
  EXPECT_EQ(quench_engine_score(c.engine, scored.data(), scored.size(), scores.data()), QUENCH_OK);
  EXPECT_LT(scores[0], 0.0f);
  EXPECT_LT(scores[1], 0.0f);
  EXPECT_EQ(quench_engine_score(c.engine, scored.data(), 0, scores.data()), QUENCH_BAD_REQUEST);
  EXPECT_NEAR(std::inner_product(embedding.begin(), embedding.end(), embedding.begin(), 0.0), 1.0, 1e-5);
}

TEST(CLibrary, AConversationAnswersAndTakesBack) {
  CHandles c;
  quench_conversation_options options;
  quench_conversation_options_init(&options);
  options.max_tokens = 10;
  std::size_t prompt_tokens = 0;
  options.on_prompt = [](size_t done, size_t, void* user) {
    *static_cast<std::size_t*>(user) = done;
    return 1;
  };
  options.on_prompt_user = &prompt_tokens;
  ASSERT_EQ(quench_conversation_new(c.engine, &options, &c.conversation), QUENCH_OK) << quench_last_error();
  std::string heard;
  const auto on_text = [](const char* text, size_t text_bytes, void* user) {
    static_cast<std::string*>(user)->append(text, text_bytes);
    return 1;
  };
  quench_answer answer{};
  answer.struct_size = sizeof(answer);
  ASSERT_EQ(quench_conversation_send(c.conversation, "hello", on_text, &heard, &answer), QUENCH_OK) << quench_last_error();
  EXPECT_EQ(heard, answer.text);
  EXPECT_EQ(prompt_tokens, answer.prompt_tokens);
  char* json = nullptr;
  ASSERT_EQ(quench_conversation_to_json(c.conversation, &json), QUENCH_OK);
  EXPECT_NE(std::string(json).find("hello"), std::string::npos);
  EXPECT_EQ(quench_conversation_undo(c.conversation), QUENCH_OK);
  EXPECT_EQ(quench_conversation_undo(c.conversation), QUENCH_END);
  EXPECT_EQ(quench_conversation_from_json(c.conversation, json), QUENCH_OK);
  EXPECT_EQ(quench_conversation_undo(c.conversation), QUENCH_OK);
  quench_free(json);
}

}  // namespace
}  // namespace quench::api
