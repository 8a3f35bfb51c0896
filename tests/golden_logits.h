#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/table.h"

namespace quench::golden {

/// A small synthetic model whose logits are pinned.
struct Case {
  std::string family;
  std::string format;
  std::string rope_scaling = "default";

  [[nodiscard]] std::string name() const { return family + "-" + format + (rope_scaling == "default" ? "" : "-" + rope_scaling); }
};

/// What must come out everywhere: hashes of the model file and of the logits of every position, little-endian f32, FNV-1a.
struct Hashes {
  std::uint64_t file = 0;
  std::uint64_t logits = 0;
  friend bool operator==(const Hashes&, const Hashes&) = default;
};

/// Every weight format on qwen3, every family, every rope scaling.
[[nodiscard]] std::vector<Case> cases();
/// Writes the model below `folder` and runs it with `kernels`, in chunks that end inside pages.
[[nodiscard]] Hashes compute(const Case& entry, const KernelTable& kernels, const std::filesystem::path& folder);

/// tests/golden/logits/hashes.txt: "name file-hash logits-hash" a line.
[[nodiscard]] std::map<std::string, Hashes> read(const std::filesystem::path& file);
void write(const std::filesystem::path& file, const std::map<std::string, Hashes>& hashes);

}  // namespace quench::golden
