#pragma once

#include <filesystem>

#include "gguf/reader.h"

namespace quench::gguf {

/// Writes an opened model as one file, in constant memory. The parts of a split one are joined, and its split.* keys dropped. One file
/// comes back byte for byte when its tensors lie in the order of its list, without gaps, padded with zeros: as all known tools write it.
void rewrite(const Reader& model, const std::filesystem::path& path);

}  // namespace quench::gguf
