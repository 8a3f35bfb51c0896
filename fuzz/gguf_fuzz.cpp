// Any bytes: either an Error, or a directory that survives being written and read again.
// usage: gguf_fuzz NEW_CORPUS tests/corpus/gguf/good tests/corpus/gguf/bad

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "gguf/reader.h"
#include "gguf/rewrite.h"
#include "gguf/writer.h"

namespace {

using namespace quench;

/// Where files live in memory, where the system has such a place.
std::filesystem::path scratch_path(const char* name) {
  static const std::filesystem::path folder =
      std::filesystem::is_directory("/dev/shm") ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
  return folder / ("quench-gguf-fuzz-" + std::to_string(::getpid()) + name);
}

[[noreturn]] void defect(const std::string& what) {
  (void)std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

std::vector<std::byte> contents(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

void write_directory(const gguf::Directory& directory, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  std::vector<gguf::TensorPlan> plans;
  for (const gguf::TensorInfo& tensor : directory.tensors) plans.push_back(gguf::plan_of(tensor));
  gguf::Writer writer(path, directory.metadata, std::move(plans), {directory.alignment, directory.version, directory.padded_end});
  for (const gguf::TensorInfo& tensor : directory.tensors) {
    writer.write(bytes.subspan(static_cast<std::size_t>(tensor.file_offset), static_cast<std::size_t>(tensor.size_bytes)));
  }
  writer.finish();
}

bool same_tensor(const gguf::TensorInfo& a, const gguf::TensorInfo& b) {
  return a.name == b.name && a.format == b.format && a.dims == b.dims && a.n_dims == b.n_dims && a.size_bytes == b.size_bytes;
}

/// What parsed is written, read with the Reader, and written again: the same tensors, the same bytes.
void round_trip(const gguf::Directory& directory, std::span<const std::byte> bytes) {
  const std::filesystem::path first = scratch_path("-1.gguf");
  const std::filesystem::path second = scratch_path("-2.gguf");
  write_directory(directory, bytes, first);
  // Parts of a split model are refused under this name, which is not what is tested here.
  const std::vector<std::byte> written = contents(first);
  const gguf::Directory again = gguf::parse_directory(written, written.size(), "again");
  if (!std::ranges::equal(directory.tensors, again.tensors, same_tensor)) defect("the tensors changed");
  if (directory.metadata.entries().size() != again.metadata.entries().size()) defect("the metadata changed");
  if (!directory.metadata.contains("split.count")) {
    const gguf::Reader reader(first);
    gguf::rewrite(reader, second);
    if (contents(second) != written) defect("written again, the bytes changed");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  gguf::Directory directory;
  try {
    directory = gguf::parse_directory(bytes, size, "input");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadFile && error.kind() != ErrorKind::kUnsupported) defect(error.what());
    return 0;
  }
  round_trip(directory, bytes);
  return 0;
}
