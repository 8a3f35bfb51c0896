#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "gguf/directory.h"
#include "gguf/metadata.h"
#include "quant/format.h"

namespace quench::gguf {

/// What a tensor will be; data follows later, in the same order.
struct TensorPlan {
  std::string name;
  Format format = Format::kF32;
  std::vector<std::uint64_t> dims;  ///< innermost first, 1 to 4
};

/// What the reader knows of a file beside metadata and tensors.
struct Layout {
  std::uint64_t alignment = kDefaultAlignment;  ///< other than 32: metadata's general.alignment must say the same
  std::uint32_t version = 3;                    ///< 2 or 3
  bool pad_end = true;                          ///< also pad after the last tensor, as all known tools do
};

/// Writes a GGUF file in one pass and constant memory: header, metadata and tensor list first, then each tensor's bytes in plan order,
/// each from a multiple of the alignment. A file whose tensors lie that way, padded with zeros, comes back byte for byte.
class Writer {
 public:
  /// Throws Error(kBadRequest) for a plan that the reader would refuse, and Error(kIo).
  Writer(const std::filesystem::path& path, const Metadata& metadata, std::vector<TensorPlan> tensors, const Layout& layout = {});

  /// Appends to the current tensor; the next one follows when it is full. Throws Error(kBadRequest) when the bytes go past its end.
  void write(std::span<const std::byte> bytes);
  /// The file appears under its name. Throws Error(kBadRequest) naming the first incomplete tensor.
  void finish();

 private:
  void pad();

  FileWriter file_;
  std::vector<TensorPlan> tensors_;
  std::vector<std::uint64_t> sizes_;
  Layout layout_;
  std::size_t current_ = 0;
  std::uint64_t written_in_current_ = 0;
};

/// The plan that makes this tensor again.
[[nodiscard]] TensorPlan plan_of(const TensorInfo& tensor);

}  // namespace quench::gguf
