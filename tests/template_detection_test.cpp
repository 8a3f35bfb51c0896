// Which built-in template the published ones call for. Needs the folder "templates" of Jinja sources (llama.cpp's models/templates)
// beside the models.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "assets.h"
#include "text/chat_template.h"

namespace quench {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TemplateDetection, PublishedTemplatesGetTheBuiltInOfTheirMarkers) {
  const auto folder = asset_folder() / "templates";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << folder.string() << " is not there";
  const std::vector<std::pair<std::string, std::string>> expected{
      {"Qwen-Qwen3-0.6B", "chatml"},
      {"Qwen-Qwen2.5-7B-Instruct", "chatml"},
      {"Qwen-QwQ-32B", "chatml"},
      {"Qwen3-Coder", "chatml"},
      {"Qwen3.5-4B", "chatml"},
      {"HuggingFaceTB-SmolLM3-3B", "chatml"},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "chatml"},
      {"Bielik-11B-v3.0-Instruct", "chatml"},
      {"LFM2-8B-A1B", "chatml"},
      {"meta-llama-Llama-3.1-8B-Instruct", "llama3"},
      {"meta-llama-Llama-3.2-3B-Instruct", "llama3"},
      {"meta-llama-Llama-3.3-70B-Instruct", "llama3"},
      {"fireworks-ai-llama-3-firefunction-v2", "llama3"},
      {"google-gemma-2-2b-it", "gemma"},
      {"google-gemma-4-31B-it", "gemma4"},
      {"google-gemma-4-31B-it-interleaved", "gemma4"},
      {"microsoft-Phi-3.5-mini-instruct", ""},
      {"mistralai-Mistral-Nemo-Instruct-2407", ""},
      {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", ""},
      {"openai-gpt-oss-120b", ""},
      {"CohereForAI-c4ai-command-r-plus-tool_use", ""},
      {"moonshotai-Kimi-K2", ""},
      {"ibm-granite-granite-4.0", ""},
  };
  for (const auto& [name, wanted] : expected) {
    const auto source = contents(folder / (name + ".jinja"));
    ASSERT_FALSE(source.empty()) << name;
    const auto found = detect_chat_template(source);
    EXPECT_EQ(found ? std::string(found->name()) : "", wanted) << name;
  }
}

TEST(TemplateDetection, OnlyQwen3AndItsLikeHaveTheThinkingSwitch) {
  const auto folder = asset_folder() / "templates";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << folder.string() << " is not there";
  const auto thinks = [&](const std::string& name) {
    return detect_chat_template(contents(folder / (name + ".jinja")))->thinks(Thinking::kDefault);
  };
  EXPECT_TRUE(thinks("Qwen-Qwen3-0.6B"));
  EXPECT_FALSE(thinks("Qwen-Qwen2.5-7B-Instruct"));
  EXPECT_FALSE(thinks("Qwen3-Coder"));
}

}  // namespace
}  // namespace quench
