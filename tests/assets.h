#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace quench {

inline constexpr std::string_view kSmolLm2 = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr std::string_view kGemma3 = "gemma-3-270m-Q4_K_M.gguf";

/// Where real models lie: the folder named by QUENCH_MODELS, else the download cache.
inline std::filesystem::path asset_folder() {
  if (const char* models = std::getenv("QUENCH_MODELS"); models != nullptr && *models != '\0') return models;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::filesystem::path(cache) / "quench/models";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "") / ".cache/quench/models";
}

/// The path of a real model, or nothing when it is not on this machine: the test then skips with missing_asset() as the reason.
inline std::optional<std::filesystem::path> asset(std::string_view file_name) {
  std::filesystem::path path = asset_folder() / file_name;
  if (!std::filesystem::is_regular_file(path)) return std::nullopt;
  return path;
}

inline std::string missing_asset(std::string_view file_name) {
  return std::string(file_name) + " is not in " + asset_folder().string() + " (set QUENCH_MODELS to the folder that holds it)";
}

}  // namespace quench
