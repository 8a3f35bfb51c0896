#include "model/synth_geometry.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"

namespace quench {
namespace {

constexpr std::array kFamilies = {
    SynthFamily{"qwen3", true, false, false, true, 1e-6f},    SynthFamily{"qwen2", false, true, false, false, 1e-6f},
    SynthFamily{"qwen3moe", true, false, false, true, 1e-6f}, SynthFamily{"qwen2moe", false, true, false, false, 1e-6f},
    SynthFamily{"llama", false, false, false, false, 1e-5f},  SynthFamily{"gemma3", true, false, true, true, 1e-6f},
};

// tiny and small: all rows are whole super-blocks of 256, heads x head_dim differs from n_embed where the family allows it, gemma3 has one
// full-attention layer after five windowed ones, and its windows are shorter than a test's prompt.
constexpr std::array kGeometries = {
    //            family    size    layers embed   ffn heads kv dim context  theta   vocab  tied
    SynthGeometry{"qwen3", "tiny", 2, 256, 512, 4, 2, 128, 2048, 1e6f, 2048, true},
    SynthGeometry{"qwen3", "small", 8, 512, 1536, 8, 4, 128, 8192, 1e6f, 8192, true},
    SynthGeometry{"qwen3", "0.6b", 28, 1024, 3072, 16, 8, 128, 40960, 1e6f, 151936, true},
    SynthGeometry{"qwen3", "1.7b", 28, 2048, 6144, 16, 8, 128, 40960, 1e6f, 151936, true},
    SynthGeometry{"qwen3", "4b", 36, 2560, 9728, 32, 8, 128, 40960, 1e6f, 151936, true},
    SynthGeometry{"qwen3", "8b", 36, 4096, 12288, 32, 8, 128, 40960, 1e6f, 151936, false},
    SynthGeometry{"qwen2", "tiny", 2, 256, 512, 4, 2, 64, 2048, 1e6f, 2048, true},
    SynthGeometry{"qwen2", "small", 8, 512, 1536, 8, 2, 64, 8192, 1e6f, 8192, true},
    SynthGeometry{"qwen2", "0.5b", 24, 896, 4864, 14, 2, 64, 32768, 1e6f, 151936, true},
    SynthGeometry{"qwen2", "1.5b", 28, 1536, 8960, 12, 2, 128, 32768, 1e6f, 151936, true},
    // n_ffn is that of the shared expert; at the end: experts, those used, channels of each.
    SynthGeometry{"qwen3moe", "tiny", 2, 256, 0, 4, 2, 128, 2048, 1e6f, 2048, false, 0, 0.0, 16, 4, 256},
    SynthGeometry{"qwen3moe", "small", 8, 512, 0, 8, 4, 128, 8192, 1e6f, 8192, false, 0, 0.0, 32, 4, 256},
    SynthGeometry{"qwen3moe", "30b-a3b", 48, 2048, 0, 32, 4, 128, 40960, 1e6f, 151936, false, 0, 0.0, 128, 8, 768},
    SynthGeometry{"qwen2moe", "tiny", 2, 256, 512, 4, 2, 64, 2048, 1e6f, 2048, false, 0, 0.0, 16, 4, 256},
    SynthGeometry{"qwen2moe", "small", 8, 512, 1024, 8, 4, 64, 8192, 1e6f, 8192, false, 0, 0.0, 32, 4, 256},
    SynthGeometry{"qwen2moe", "a2.7b", 24, 2048, 5632, 16, 16, 128, 8192, 1e6f, 151936, false, 0, 0.0, 60, 4, 1408},
    SynthGeometry{"llama", "tiny", 3, 256, 768, 4, 2, 64, 2048, 1e5f, 2048, true},
    SynthGeometry{"llama", "small", 8, 512, 1536, 8, 4, 64, 8192, 1e5f, 8192, true},
    SynthGeometry{"llama", "135m", 30, 576, 1536, 9, 3, 64, 8192, 1e5f, 49152, true},
    SynthGeometry{"llama", "1b", 16, 2048, 8192, 32, 8, 64, 131072, 5e5f, 128256, true, 0, 32.0},
    SynthGeometry{"gemma3", "tiny", 6, 256, 512, 4, 1, 128, 2048, 1e6f, 2048, true, 64},
    SynthGeometry{"gemma3", "small", 8, 512, 1536, 4, 2, 256, 8192, 1e6f, 8192, true, 128},
    SynthGeometry{"gemma3", "270m", 18, 640, 2048, 4, 1, 256, 32768, 1e6f, 262144, true, 512},
    SynthGeometry{"gemma3", "1b", 26, 1152, 6912, 4, 1, 256, 32768, 1e6f, 262144, true, 512},
};

std::string known_families() {
  std::string names;
  for (const SynthFamily& family : kFamilies) names += (names.empty() ? "" : ", ") + std::string(family.name);
  return names;
}

std::string known_sizes(std::string_view family) {
  std::string names;
  for (const SynthGeometry& row : kGeometries) {
    if (row.family == family) names += (names.empty() ? "" : ", ") + std::string(row.size);
  }
  return names;
}

}  // namespace

std::span<const SynthFamily> all_synth_families() noexcept { return kFamilies; }
std::span<const SynthGeometry> all_synth_geometries() noexcept { return kGeometries; }

const SynthFamily& synth_family(std::string_view name) {
  const auto* found = std::ranges::find(kFamilies, name, &SynthFamily::name);
  if (found == kFamilies.end()) throw_bad_request("synth: unknown family " + std::string(name) + "; there are " + known_families());
  return *found;
}

const SynthGeometry& synth_geometry(std::string_view family, std::string_view size) {
  (void)synth_family(family);
  for (const SynthGeometry& row : kGeometries) {
    if (row.family == family && row.size == size) return row;
  }
  throw_bad_request("synth: family " + std::string(family) + " has no size " + std::string(size) + "; there are " + known_sizes(family));
}

}  // namespace quench
