#include "gguf/writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/cursor.h"

namespace quench::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& problem) {
  throw_bad_request(path.string() + ": cannot be written: " + problem);
}

// ------------------------------------------------------------------------------------------------------------------ what is allowed

void check_name(const std::filesystem::path& path, const std::string& what, const std::string& name, std::uint64_t limit_bytes) {
  if (name.empty()) fail(path, what + " has an empty name");
  if (name.size() > limit_bytes)
    fail(path, what + " " + printable(name) + ": the name is longer than " + std::to_string(limit_bytes) + " bytes");
  if (name.find('\0') != std::string::npos) fail(path, what + " " + printable(name) + ": the name holds a zero byte");
}

void check_layout(const std::filesystem::path& path, const Metadata& metadata, const Layout& layout) {
  if (layout.version != 2 && layout.version != 3) fail(path, "GGUF version " + std::to_string(layout.version));
  if (!std::has_single_bit(layout.alignment) || layout.alignment > kMaxAlignment) {
    fail(path, "alignment " + std::to_string(layout.alignment) + " is no power of two up to " + std::to_string(kMaxAlignment));
  }
  const Value* value = metadata.find("general.alignment");
  const std::uint32_t* stated = value != nullptr ? std::get_if<std::uint32_t>(value) : nullptr;
  if (value != nullptr && stated == nullptr) fail(path, "general.alignment is " + describe_type(*value) + ", expected uint32");
  if ((stated != nullptr ? *stated : kDefaultAlignment) != layout.alignment) {
    fail(path, "its alignment is " + std::to_string(layout.alignment) + ", but general.alignment says otherwise");
  }
}

std::uint64_t planned_bytes(const std::filesystem::path& path, const TensorPlan& tensor) {
  check_name(path, "tensor", tensor.name, kMaxTensorNameBytes);
  if (tensor.dims.empty() || tensor.dims.size() > kMaxDims) fail(path, "tensor " + tensor.name + ": expected 1 to 4 dimensions");
  if (std::ranges::count(tensor.dims, 0u) != 0) fail(path, "tensor " + tensor.name + ": a dimension is 0");
  std::optional<std::uint64_t> bytes = row_bytes(tensor.format, tensor.dims[0]);
  if (!bytes) {
    fail(path, "tensor " + tensor.name + ": rows of " + std::to_string(tensor.dims[0]) + " elements are no whole number of " +
                   std::string(format_info(tensor.format).name) + " blocks");
  }
  for (std::size_t i = 1; i < tensor.dims.size() && bytes; ++i) bytes = checked_mul(*bytes, tensor.dims[i]);
  if (!bytes) fail(path, "tensor " + tensor.name + ": its size overflows");
  return *bytes;
}

std::vector<std::uint64_t> planned_sizes(const std::filesystem::path& path, std::span<const TensorPlan> tensors) {
  std::unordered_set<std::string_view> names;
  std::vector<std::uint64_t> sizes;
  sizes.reserve(tensors.size());
  for (const TensorPlan& tensor : tensors) {
    sizes.push_back(planned_bytes(path, tensor));
    if (!names.insert(tensor.name).second) fail(path, "tensor " + tensor.name + " is planned twice");
  }
  return sizes;
}

// --------------------------------------------------------------------------------------------------------------------------- bytes

template <typename T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>)
void put(FileWriter& file, T value) {
  file.write(std::as_bytes(std::span(&value, 1)));
}

void put(FileWriter& file, bool value) { put(file, static_cast<std::uint8_t>(value ? 1 : 0)); }

void put(FileWriter& file, const std::string& text) {
  put(file, static_cast<std::uint64_t>(text.size()));
  file.write(std::string_view(text));
}

void put(FileWriter& file, ValueType type) { put(file, static_cast<std::uint32_t>(type)); }

void put(FileWriter& file, const Array& array) {
  put(file, element_type_of(array));
  put(file, static_cast<std::uint64_t>(size_of(array)));
  std::visit(
      [&]<typename T>(const std::vector<T>& elements) {
        if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, bool>) {
          file.write(std::as_bytes(std::span(elements)));
        } else {
          for (const T& element : elements) put(file, element);
        }
      },
      array);
}

void put_metadata(FileWriter& file, const Metadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    put(file, key);
    put(file, type_of(value));
    std::visit([&](const auto& held) { put(file, held); }, value);
  }
}

void put_tensor(FileWriter& file, const TensorPlan& tensor, std::uint64_t offset) {
  put(file, tensor.name);
  put(file, static_cast<std::uint32_t>(tensor.dims.size()));
  for (const std::uint64_t dim : tensor.dims) put(file, dim);
  put(file, static_cast<std::uint32_t>(tensor.format));
  put(file, offset);
}

}  // namespace

Writer::Writer(const std::filesystem::path& path, const Metadata& metadata, std::vector<TensorPlan> tensors, const Layout& layout)
    : file_(path), tensors_(std::move(tensors)), sizes_(planned_sizes(path, tensors_)), layout_(layout) {
  check_layout(path, metadata, layout);
  for (const Metadata::Entry& entry : metadata.entries()) check_name(path, "metadata key", entry.key, kMaxKeyBytes);
  file_.write(std::string_view("GGUF"));
  put(file_, layout.version);
  put(file_, static_cast<std::uint64_t>(tensors_.size()));
  put(file_, static_cast<std::uint64_t>(metadata.entries().size()));
  put_metadata(file_, metadata);
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    put_tensor(file_, tensors_[i], offset);
    const auto end = checked_add(offset, sizes_[i]);
    const auto next = end ? checked_align(*end, layout.alignment) : std::nullopt;
    if (!next) fail(path, "the sizes of its tensors overflow");
    offset = *next;
  }
  if (!tensors_.empty() || layout_.pad_end) pad();
}

void Writer::pad() {
  static constexpr std::array<std::byte, 4096> kZeros{};
  std::uint64_t missing = round_up(file_.written_bytes(), layout_.alignment) - file_.written_bytes();
  while (missing > 0) {
    const auto n = std::min<std::uint64_t>(missing, kZeros.size());
    file_.write(std::span(kZeros).first(static_cast<std::size_t>(n)));
    missing -= n;
  }
}

void Writer::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (current_ == tensors_.size()) throw_bad_request("GGUF writer: " + std::to_string(bytes.size()) + " bytes after the last tensor");
  const std::uint64_t room = sizes_[current_] - written_in_current_;
  if (bytes.size() > room) {
    throw_bad_request("GGUF writer: tensor " + tensors_[current_].name + " takes " + std::to_string(room) + " more bytes, given " +
                      std::to_string(bytes.size()));
  }
  file_.write(bytes);
  written_in_current_ += bytes.size();
  if (written_in_current_ < sizes_[current_]) return;
  written_in_current_ = 0;
  ++current_;
  if (current_ < tensors_.size() || layout_.pad_end) pad();
}

void Writer::finish() {
  if (current_ < tensors_.size()) {
    throw_bad_request("GGUF writer: tensor " + tensors_[current_].name + " is incomplete: " + std::to_string(written_in_current_) + " of " +
                      std::to_string(sizes_[current_]) + " bytes were written");
  }
  file_.commit();
}

TensorPlan plan_of(const TensorInfo& tensor) {
  return {tensor.name, tensor.format, {tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims}};
}

}  // namespace quench::gguf
