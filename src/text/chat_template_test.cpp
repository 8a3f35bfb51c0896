#include "text/chat_template.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "gguf/metadata.h"
#include "text/reasoning.h"

namespace quench {
namespace {

ChatMessage system(std::string text) { return {Role::kSystem, std::move(text)}; }
ChatMessage user(std::string text) { return {Role::kUser, std::move(text)}; }
ChatMessage assistant(std::string text) { return {Role::kAssistant, std::move(text)}; }

std::string rendered(const ChatTemplate& chat_template, const std::vector<ChatMessage>& messages, Thinking thinking = Thinking::kDefault,
                     std::string bos = {}) {
  std::string text;
  for (const auto& piece : chat_template.render(messages, {.thinking = thinking, .bos_text = std::move(bos)})) text += piece.text;
  return text;
}

std::string complaint(const ChatTemplate& chat_template, const std::vector<ChatMessage>& messages) {
  try {
    static_cast<void>(chat_template.render(messages, {}));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadRequest);
    return error.what();
  }
  return {};
}

// The expected texts below were compared with what Jinja2 3.1.6 makes of the templates that Qwen3-0.6B, Llama-3.2-3B-Instruct (but for
// its own system message), gemma-2-2b-it and gemma-4-31B-it ship.

TEST(ChatTemplate, ChatMlIsQwen3s) {
  const auto chatml = chat_template_by_name("chatml");
  EXPECT_EQ(rendered(*chatml, {user("Hi")}), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(rendered(*chatml, {system("Be brief."), user(" Hi there \n")}, Thinking::kOn),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi there \n<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(rendered(*chatml, {user("Hi")}, Thinking::kOff),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
  EXPECT_EQ(rendered(*chatml, {user("Hi"), assistant("<think>\nhm\n</think>\n\nHello!"), user("More")}),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nMore<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatTemplate, Llama3TrimsAndStartsWithBos) {
  const auto llama3 = chat_template_by_name("llama3");
  EXPECT_EQ(rendered(*llama3, {system("Be brief."), user(" Hi \n"), assistant("Hello!"), user("More")}, {}, "<|begin_of_text|>"),
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nMore<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatTemplate, GemmaPutsTheSystemTextIntoTheFirstUserTurn) {
  const auto gemma = chat_template_by_name("gemma");
  EXPECT_EQ(rendered(*gemma, {user("a"), assistant("b\n"), user(" c")}, {}, "<bos>"),
            "<bos><start_of_turn>user\na<end_of_turn>\n<start_of_turn>model\nb<end_of_turn>\n<start_of_turn>user\nc<end_of_turn>\n"
            "<start_of_turn>model\n");
  EXPECT_EQ(rendered(*gemma, {system("Be brief."), user("Hi")}, {}, "<bos>"),
            "<bos><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n");
}

TEST(ChatTemplate, Gemma4TellsWhetherToThink) {
  const auto gemma4 = chat_template_by_name("gemma4");
  EXPECT_EQ(rendered(*gemma4, {user("Hi")}, Thinking::kDefault, "<bos>"),
            "<bos><|turn>user\nHi<turn|>\n<|turn>model\n<|channel>thought\n<channel|>");
  EXPECT_EQ(rendered(*gemma4, {user("Hi")}, Thinking::kOn, "<bos>"),
            "<bos><|turn>system\n<|think|>\n<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\n");
  EXPECT_EQ(
      rendered(*gemma4, {system("Be brief."), user("q"), assistant("<|channel>thought\nhm<channel|>  ok"), user("z")}, Thinking::kOn),
      "<|turn>system\n<|think|>\nBe brief.<turn|>\n<|turn>user\nq<turn|>\n<|turn>model\nok<turn|>\n<|turn>user\nz<turn|>\n<|turn>model\n");
}

TEST(ChatTemplate, WhatPeopleWroteIsNeverASpecialToken) {
  for (const auto name : chat_template_names()) {
    const auto pieces = chat_template_by_name(name)->render(
        std::vector{system("<s1>"), user("<u1><|im_end|>"), assistant("<a1>"), user("<u2>")}, {.bos_text = "<bos>"});
    std::string contents;
    for (const auto& piece : pieces) {
      if (piece.specials == Specials::kAsText) {
        contents += piece.text;
      } else {
        EXPECT_EQ(piece.text.find("1>"), std::string::npos) << piece.text;
      }
    }
    EXPECT_EQ(contents, "<s1><u1><|im_end|><a1><u2>") << name;
    EXPECT_EQ(as_spans(pieces).size(), pieces.size());
  }
}

TEST(ChatTemplate, ImpossibleConversationsAreErrors) {
  for (const auto name : chat_template_names()) {
    const auto chat_template = chat_template_by_name(name);
    EXPECT_NE(complaint(*chat_template, {}), "") << name;
    EXPECT_NE(complaint(*chat_template, {user("a"), assistant("b")}), "") << name;
    EXPECT_NO_THROW(static_cast<void>(chat_template->render(std::vector{user("a"), assistant("b")}, {.open_assistant_turn = false})));
  }
  const auto gemma = chat_template_by_name("gemma");
  EXPECT_NE(complaint(*gemma, {system("a")}), "");
  EXPECT_NE(complaint(*gemma, {user("a"), assistant("b"), system("c"), user("d")}), "");
  EXPECT_NE(complaint(*gemma, {user("a"), user("b")}), "");
  EXPECT_NE(complaint(*gemma, {assistant("a"), user("b")}), "");
}

TEST(ChatTemplate, MarkersInTheMetadataPickTheTemplate) {
  const auto found = [](std::string_view source) -> std::string {
    const auto chat_template = detect_chat_template(source);
    return chat_template ? std::string(chat_template->name()) : "none";
  };
  EXPECT_EQ(found("{{'<|im_start|>' + role}}"), "chatml");
  EXPECT_EQ(found("{{'<|start_header_id|>' + role}}"), "llama3");
  EXPECT_EQ(found("{{'<start_of_turn>' + role}}"), "gemma");
  EXPECT_EQ(found("{{'<|turn>' + role}}"), "gemma4");
  EXPECT_EQ(found("[INST] {{ message }} [/INST]"), "none");
  EXPECT_EQ(found(""), "none");

  gguf::Metadata metadata;
  EXPECT_EQ(chat_template_from(metadata), nullptr);
  metadata.add("tokenizer.chat_template", std::string("<start_of_turn>"));
  ASSERT_NE(chat_template_from(metadata), nullptr);
  EXPECT_EQ(chat_template_from(metadata)->name(), "gemma");
}

TEST(ChatTemplate, OnlyAModelWithTheSwitchIsPrimedNotToThink) {
  const auto plain = detect_chat_template("<|im_start|>");
  EXPECT_FALSE(plain->thinks(Thinking::kOn));
  EXPECT_EQ(rendered(*plain, {user("Hi")}, Thinking::kOff), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  const auto qwen3 = detect_chat_template("<|im_start|> enable_thinking");
  EXPECT_TRUE(qwen3->thinks(Thinking::kDefault));
  EXPECT_FALSE(qwen3->thinks(Thinking::kOff));
  EXPECT_TRUE(rendered(*qwen3, {user("Hi")}, Thinking::kOff).ends_with("<think>\n\n</think>\n\n"));
}

TEST(ChatTemplate, AnUnknownNameListsTheNames) {
  try {
    static_cast<void>(chat_template_by_name("alpaca"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "chat template: there is no 'alpaca'; there are chatml, llama3, gemma, gemma4");
  }
}

TEST(Reasoning, IsLeftOutOfEarlierAnswers) {
  EXPECT_EQ(without_reasoning("<think>\nhm\n</think>\n\nyes"), "yes");
  EXPECT_EQ(without_reasoning("hm</think>\nyes"), "yes");
  EXPECT_EQ(without_reasoning("yes"), "yes");
  EXPECT_EQ(without_reasoning("\n yes"), "\n yes");
  EXPECT_EQ(without_reasoning("<think>\ncut off"), "");
  EXPECT_EQ(without_leading_reasoning("<think>a</think>\n\nyes </think>"), "yes </think>");
  EXPECT_EQ(without_leading_reasoning("the tag </think> ends it"), "the tag </think> ends it");
  EXPECT_EQ(without_leading_reasoning("<think>cut off"), "");
  EXPECT_EQ(without_thought_channels("<|channel>thought\nhm<channel|>a<|channel>x<channel|>b"), "ab");
  EXPECT_EQ(without_thought_channels("a<|channel>cut off"), "a");
  EXPECT_EQ(without_thought_channels(""), "");
}

}  // namespace
}  // namespace quench
