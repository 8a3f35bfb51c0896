#include "gguf/reader.h"

#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "gguf/cursor.h"
#include "gguf/split_name.h"

namespace quench::gguf {
namespace {

/// A key of a split model, with the file's name in whatever goes wrong.
std::optional<std::uint64_t> split_key(const Metadata& metadata, std::string_view key, const std::string& source) {
  try {
    return metadata.unsigned_at(key);
  } catch (const Error& error) {
    throw Error(error.kind(), source + ": " + error.what());
  }
}

void check_split_key(const Metadata& metadata, std::string_view key, std::uint64_t expected, const std::string& source) {
  const auto found = split_key(metadata, key, source);
  if (!found) throw_bad_file(source + ": part of a split model, but " + std::string(key) + " is missing");
  if (*found != expected) {
    throw_bad_file(source + ": " + std::string(key) + " is " + std::to_string(*found) + ", expected " + std::to_string(expected) +
                   "; the parts do not belong together, or one was renamed");
  }
}

/// How many parts the model has, from this one's keys, which must agree with its name.
std::size_t count_parts(const Metadata& metadata, const std::optional<SplitName>& name, const std::string& source) {
  const std::uint64_t count = split_key(metadata, "split.count", source).value_or(1);
  if (count <= 1 && (!name || name->count == 1)) return 1;
  if (!name) {
    throw_bad_file(source + ": part of a split model (split.count is " + std::to_string(count) +
                   "), but its name does not end in -NNNNN-of-NNNNN.gguf, so the other parts cannot be found; give it its name back");
  }
  check_split_key(metadata, "split.count", name->count, source);
  return name->count;
}

}  // namespace

Reader::Reader(const std::filesystem::path& path) : path_(path) {
  try {
    File file(path);
    directory_ = read_directory(file);
    const std::optional<SplitName> name = SplitName::parse(path);
    const std::size_t n_parts = count_parts(directory_.metadata, name, path.string());
    if (name && n_parts > 1) {
      open_parts(*name);
    } else {
      parts_.push_back(std::move(file));
    }
    index_tensors();
  } catch (const std::bad_alloc&) {
    throw_out_of_memory(path.string() + ": no memory for its metadata and tensor list");
  }
}

void Reader::open_parts(const SplitName& name) {
  directory_ = {};
  for (std::size_t part = 0; part < name.count; ++part) {
    const std::filesystem::path part_path = name.part_path(path_, part + 1);
    if (!std::filesystem::exists(part_path)) {
      throw_bad_file(path_.string() + ": part " + std::to_string(part + 1) + " of " + std::to_string(name.count) +
                     " is missing: " + part_path.string());
    }
    add_part(part_path, part, name.count);
  }
  check_split_key(directory_.metadata, "split.tensors.count", directory_.tensors.size(), parts_.front().path().string());
}

void Reader::add_part(const std::filesystem::path& path, std::size_t part, std::size_t n_parts) {
  const std::string source = path.string();
  File file(path);
  Directory directory = read_directory(file);
  check_split_key(directory.metadata, "split.no", part, source);
  check_split_key(directory.metadata, "split.count", n_parts, source);
  if (part == 0) {
    directory_ = std::move(directory);
    parts_.push_back(std::move(file));
    return;
  }
  if (directory.version != directory_.version) {
    throw_bad_file(source + ": GGUF version " + std::to_string(directory.version) + ", but the first part has version " +
                   std::to_string(directory_.version));
  }
  // Splitting tools do not repeat the key in later parts, which then have the default alignment of their own.
  if (directory.metadata.contains("general.alignment") && directory.alignment != directory_.alignment) {
    throw_bad_file(source + ": alignment " + std::to_string(directory.alignment) + ", but the first part has " +
                   std::to_string(directory_.alignment));
  }
  for (TensorInfo& tensor : directory.tensors) {
    tensor.part = part;
    directory_.tensors.push_back(std::move(tensor));
  }
  parts_.push_back(std::move(file));
}

void Reader::index_tensors() {
  for (std::size_t i = 0; i < directory_.tensors.size(); ++i) {
    const TensorInfo& tensor = directory_.tensors[i];
    const auto [found, inserted] = index_.emplace(tensor.name, i);
    if (!inserted) {
      throw_bad_file(parts_[tensor.part].path().string() + ": tensor " + printable(tensor.name) + " is also in " +
                     parts_[directory_.tensors[found->second].part].path().string());
    }
  }
}

const TensorInfo* Reader::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &directory_.tensors[found->second];
}

const TensorInfo& Reader::tensor(std::string_view name) const {
  const TensorInfo* found = find(name);
  if (found == nullptr) throw_bad_file(path_.string() + ": tensor " + std::string(name) + " is missing");
  return *found;
}

std::uint64_t Reader::total_file_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const File& part : parts_) total += part.size_bytes();
  return total;
}

void Reader::read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > tensor.size_bytes || out.size() > tensor.size_bytes - offset) {
    throw_bad_request(path_.string() + ": tensor " + tensor.name + ": read of " + std::to_string(out.size()) + " bytes at " +
                      std::to_string(offset) + " goes past its " + std::to_string(tensor.size_bytes) + " bytes");
  }
  parts_[tensor.part].read_at(tensor.file_offset + offset, out);
}

void Reader::drop_cache(const TensorInfo& tensor) const noexcept { parts_[tensor.part].drop_cache(tensor.file_offset, tensor.size_bytes); }

}  // namespace quench::gguf
