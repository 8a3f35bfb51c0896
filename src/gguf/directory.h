#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "gguf/metadata.h"
#include "quant/format.h"

namespace quench::gguf {

inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 16;
inline constexpr std::uint64_t kMaxTensors = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxKeyBytes = 65535;      // GGUF specification
inline constexpr std::uint64_t kMaxTensorNameBytes = 64;  // GGUF specification
inline constexpr int kMaxDims = 4;

/// One tensor of the directory. Dimensions as in the file: innermost (contiguous) first, unused ones 1.
struct TensorInfo {
  std::string name;
  Format format = Format::kF32;
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};
  int n_dims = 0;
  std::size_t part = 0;           ///< which file of a split model
  std::uint64_t file_offset = 0;  ///< absolute, in that file
  std::uint64_t size_bytes = 0;

  /// Elements of one row (the innermost dimension), and how many rows.
  [[nodiscard]] std::uint64_t columns() const noexcept { return dims[0]; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return dims[1] * dims[2] * dims[3]; }
  /// "Q4_K [1024 x 3072]"
  [[nodiscard]] std::string describe() const;
};

/// Header, metadata and tensor list of one file; docs/gguf.md lists every check.
struct Directory {
  std::uint32_t version = 3;
  std::uint64_t alignment = kDefaultAlignment;
  Metadata metadata;
  std::vector<TensorInfo> tensors;
  std::uint64_t data_offset = 0;  ///< where the tensor data starts
  bool padded_end = true;         ///< the file goes on to the next multiple of the alignment after the last tensor
};

/// Parses bytes in memory; nothing is trusted. `source` names the file in errors. Throws Error(kBadFile) or Error(kUnsupported).
/// `file_bytes` is the size of the whole file when `bytes` is only its start; the tensors must fit into it.
[[nodiscard]] Directory parse_directory(std::span<const std::byte> bytes, std::uint64_t file_bytes, const std::string& source);

/// The same from a file, of which only the directory is read.
[[nodiscard]] Directory read_directory(const File& file);

}  // namespace quench::gguf
