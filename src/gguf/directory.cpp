#include "gguf/directory.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/cursor.h"

namespace quench::gguf {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;                        // "GGUF"
constexpr std::uint64_t kLeastEntryBytes = 8 + 1 + 4 + 1;           // key length, key, value type, value
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // name length, name, n_dims, one dimension, type, offset

/// What a file is that does not start with "GGUF", for people who downloaded the wrong thing.
std::string other_file_type(std::uint32_t magic) {
  switch (magic) {
    case 0x67676d6c:
    case 0x67676d66:
    case 0x67676a74: return "an old GGML file; convert the original model to GGUF with current tools";
    case 0x73726576: return "perhaps a Git LFS pointer: fetch the real file with `git lfs pull`";
    case 0x04034b50: return "a zip archive, perhaps PyTorch weights; convert it to GGUF";
    case 0x4f44213c:
    case 0x6d74683c: return "an HTML page: the download link did not give the file";
    default: return "no GGUF file: it does not start with the letters GGUF";
  }
}

std::string number_list(std::span<const std::uint64_t> numbers) {
  std::string text;
  for (const std::uint64_t number : numbers) text += (text.empty() ? "" : " x ") + std::to_string(number);
  return text;
}

// ---------------------------------------------------------------------------------------------------------------------- metadata

bool to_bool(Cursor& cursor, std::uint8_t byte) {
  if (byte > 1) cursor.fail("a bool is 0 or 1, found " + std::to_string(byte));
  return byte == 1;
}

std::vector<bool> read_bools(Cursor& cursor, std::uint64_t count) {
  const std::vector<std::uint8_t> bytes = cursor.numbers<std::uint8_t>(count);
  std::vector<bool> values;
  values.reserve(bytes.size());
  for (const std::uint8_t byte : bytes) values.push_back(to_bool(cursor, byte));
  return values;
}

std::vector<std::string> read_strings(Cursor& cursor, std::uint64_t count) {
  cursor.require_elements(count, sizeof(std::uint64_t));
  std::vector<std::string> values;
  // A million at once at most: the rest only once it has arrived.
  values.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(count, std::uint64_t{1} << 20)));
  while (values.size() < count) values.push_back(cursor.text(kMaxDirectoryBytes));
  return values;
}

ValueType read_value_type(Cursor& cursor) {
  const auto number = cursor.number<std::uint32_t>();
  if (number > static_cast<std::uint32_t>(ValueType::kFloat64)) cursor.fail("unknown value type " + std::to_string(number));
  return static_cast<ValueType>(number);
}

Array read_array(Cursor& cursor) {
  const ValueType type = read_value_type(cursor);
  const auto count = cursor.number<std::uint64_t>();
  switch (type) {
    case ValueType::kUint8: return cursor.numbers<std::uint8_t>(count);
    case ValueType::kInt8: return cursor.numbers<std::int8_t>(count);
    case ValueType::kUint16: return cursor.numbers<std::uint16_t>(count);
    case ValueType::kInt16: return cursor.numbers<std::int16_t>(count);
    case ValueType::kUint32: return cursor.numbers<std::uint32_t>(count);
    case ValueType::kInt32: return cursor.numbers<std::int32_t>(count);
    case ValueType::kFloat32: return cursor.numbers<float>(count);
    case ValueType::kBool: return read_bools(cursor, count);
    case ValueType::kString: return read_strings(cursor, count);
    case ValueType::kUint64: return cursor.numbers<std::uint64_t>(count);
    case ValueType::kInt64: return cursor.numbers<std::int64_t>(count);
    case ValueType::kFloat64: return cursor.numbers<double>(count);
    case ValueType::kArray: break;
  }
  cursor.fail_unsupported("an array of arrays; no model needs one");
}

Value read_value(Cursor& cursor) {
  switch (read_value_type(cursor)) {
    case ValueType::kUint8: return cursor.number<std::uint8_t>();
    case ValueType::kInt8: return cursor.number<std::int8_t>();
    case ValueType::kUint16: return cursor.number<std::uint16_t>();
    case ValueType::kInt16: return cursor.number<std::int16_t>();
    case ValueType::kUint32: return cursor.number<std::uint32_t>();
    case ValueType::kInt32: return cursor.number<std::int32_t>();
    case ValueType::kFloat32: return cursor.number<float>();
    case ValueType::kBool: return to_bool(cursor, cursor.number<std::uint8_t>());
    case ValueType::kString: return cursor.text(kMaxDirectoryBytes);
    case ValueType::kUint64: return cursor.number<std::uint64_t>();
    case ValueType::kInt64: return cursor.number<std::int64_t>();
    case ValueType::kFloat64: return cursor.number<double>();
    case ValueType::kArray: break;
  }
  return read_array(cursor);
}

std::string read_name(Cursor& cursor, std::uint64_t limit_bytes) {
  std::string name = cursor.text(limit_bytes);
  if (name.empty()) cursor.fail("the name is empty");
  if (name.find('\0') != std::string::npos) cursor.fail("the name holds a zero byte");
  return name;
}

Metadata read_metadata(Cursor& cursor, std::uint64_t n_entries) {
  Metadata metadata;
  for (std::uint64_t i = 0; i < n_entries; ++i) {
    cursor.set_place("metadata entry " + std::to_string(i));
    std::string key = read_name(cursor, kMaxKeyBytes);
    cursor.set_place("metadata key " + printable(key));
    if (metadata.contains(key)) cursor.fail("the key appears twice");
    Value value = read_value(cursor);
    metadata.add(std::move(key), std::move(value));
  }
  return metadata;
}

std::uint64_t read_alignment(const Cursor& cursor, const Metadata& metadata) {
  const Value* value = metadata.find("general.alignment");
  if (value == nullptr) return kDefaultAlignment;
  const std::uint32_t* alignment = std::get_if<std::uint32_t>(value);
  if (alignment == nullptr) cursor.fail("general.alignment is " + describe_type(*value) + ", expected uint32");
  if (!std::has_single_bit(*alignment) || *alignment > kMaxAlignment) {
    cursor.fail("general.alignment is " + std::to_string(*alignment) + ", expected a power of two up to " + std::to_string(kMaxAlignment));
  }
  return *alignment;
}

// ----------------------------------------------------------------------------------------------------------------------- tensors

Format read_format(Cursor& cursor) {
  const auto number = cursor.number<std::uint32_t>();
  const std::optional<Format> format = format_from_type_number(number);
  if (!format) {
    cursor.fail_unsupported("tensor type number " + std::to_string(number) +
                            " is not known to this version; `quench info` lists the formats it reads");
  }
  return *format;
}

std::uint64_t tensor_bytes(const Cursor& cursor, const TensorInfo& tensor) {
  const FormatInfo& format = format_info(tensor.format);
  const auto block = static_cast<std::uint64_t>(format.block_elements);
  if (tensor.dims[0] % block != 0) {
    cursor.fail("rows of " + std::to_string(tensor.dims[0]) + " elements are no whole number of " + std::string(format.name) +
                " blocks of " + std::to_string(block));
  }
  std::optional<std::uint64_t> bytes = checked_mul(tensor.dims[0] / block, static_cast<std::uint64_t>(format.block_bytes));
  std::optional<std::uint64_t> elements = tensor.dims[0];
  for (std::size_t i = 1; i < tensor.dims.size(); ++i) {
    if (bytes) bytes = checked_mul(*bytes, tensor.dims[i]);
    if (elements) elements = checked_mul(*elements, tensor.dims[i]);
  }
  if (!bytes || !elements) cursor.fail("dimensions " + number_list(tensor.dims) + " overflow 64 bits");
  return *bytes;
}

/// `file_offset` is left relative to the data section, whose start is not known yet.
TensorInfo read_tensor(Cursor& cursor) {
  TensorInfo tensor;
  tensor.name = read_name(cursor, kMaxTensorNameBytes);
  cursor.set_place("tensor " + printable(tensor.name));
  const auto n_dims = cursor.number<std::uint32_t>();
  if (n_dims < 1 || n_dims > kMaxDims) cursor.fail(std::to_string(n_dims) + " dimensions, expected 1 to " + std::to_string(kMaxDims));
  tensor.n_dims = static_cast<int>(n_dims);
  for (std::size_t i = 0; i < n_dims; ++i) {
    tensor.dims[i] = cursor.number<std::uint64_t>();
    if (tensor.dims[i] == 0) cursor.fail("dimension " + std::to_string(i) + " is 0; a tensor without elements holds no weights");
  }
  tensor.format = read_format(cursor);
  tensor.file_offset = cursor.number<std::uint64_t>();
  tensor.size_bytes = tensor_bytes(cursor, tensor);
  return tensor;
}

std::vector<TensorInfo> read_tensors(Cursor& cursor, std::uint64_t n_tensors) {
  std::vector<TensorInfo> tensors;
  std::unordered_set<std::string> names;
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    cursor.set_place("tensor entry " + std::to_string(i));
    tensors.push_back(read_tensor(cursor));
    if (!names.insert(tensors.back().name).second) cursor.fail("the name appears twice");
  }
  return tensors;
}

/// Makes the offsets absolute. Afterwards no offset or end overflows.
void place_tensors(Cursor& cursor, Directory& directory) {
  for (TensorInfo& tensor : directory.tensors) {
    cursor.set_place("tensor " + printable(tensor.name));
    if (tensor.file_offset % directory.alignment != 0) {
      cursor.fail("its offset " + std::to_string(tensor.file_offset) + " is no multiple of the alignment " +
                  std::to_string(directory.alignment));
    }
    const auto begin = checked_add(directory.data_offset, tensor.file_offset);
    if (!begin || !checked_add(*begin, tensor.size_bytes)) cursor.fail("its offset " + std::to_string(tensor.file_offset) + " overflows");
    tensor.file_offset = *begin;
  }
}

[[noreturn]] void fail_truncated(Cursor& cursor, const TensorInfo& tensor, std::uint64_t last_end) {
  const std::uint64_t end = tensor.file_offset + tensor.size_bytes;
  const std::uint64_t file_bytes = cursor.file_bytes();
  cursor.set_place("tensor " + printable(tensor.name));
  cursor.fail("the file is truncated: this is the first tensor that does not fit, it ends at byte " + std::to_string(end) +
              " and the file at byte " + std::to_string(file_bytes) + ", " + std::to_string(end - file_bytes) + " bytes are missing (" +
              std::to_string(last_end - file_bytes) + " up to the end of the last tensor); fetch the file again");
}

/// No two tensors share bytes, and all lie inside the file. Leaves the end of the last one, or of the directory when there is none.
std::uint64_t check_extents(Cursor& cursor, const Directory& directory, std::uint64_t directory_bytes) {
  std::vector<const TensorInfo*> in_order;
  in_order.reserve(directory.tensors.size());
  for (const TensorInfo& tensor : directory.tensors) in_order.push_back(&tensor);
  std::ranges::sort(in_order, {}, &TensorInfo::file_offset);
  std::uint64_t end = directory_bytes;
  const TensorInfo* first_cut = nullptr;
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    const TensorInfo& tensor = *in_order[i];
    if (tensor.file_offset < end && i > 0) {
      cursor.set_place("tensor " + printable(tensor.name));
      cursor.fail("its data overlaps that of " + printable(in_order[i - 1]->name));
    }
    end = tensor.file_offset + tensor.size_bytes;
    if (end > cursor.file_bytes() && first_cut == nullptr) first_cut = &tensor;
  }
  if (first_cut != nullptr) fail_truncated(cursor, *first_cut, end);
  return end;
}

// ------------------------------------------------------------------------------------------------------------------------ header

std::uint32_t read_version(Cursor& cursor) {
  const auto magic = cursor.number<std::uint32_t>();
  if (magic != kMagic) cursor.fail(other_file_type(magic));
  const auto version = cursor.number<std::uint32_t>();
  if (version == 2 || version == 3) return version;
  if (version == 1) cursor.fail_unsupported("GGUF version 1; convert the model again with current tools (version 3)");
  const std::uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3) cursor.fail_unsupported("a big-endian GGUF file; convert it to little-endian");
  cursor.fail_unsupported("GGUF version " + std::to_string(version) + "; versions 2 and 3 are read");
}

std::uint64_t read_count(Cursor& cursor, const char* what, std::uint64_t limit) {
  const auto count = cursor.number<std::uint64_t>();
  if (count > limit) cursor.fail("claims " + std::to_string(count) + " " + what + ", at most " + std::to_string(limit) + " are read");
  return count;
}

Directory parse(Cursor& cursor) {
  Directory directory;
  directory.version = read_version(cursor);
  const std::uint64_t n_tensors = read_count(cursor, "tensors", kMaxTensors);
  const std::uint64_t n_entries = read_count(cursor, "metadata entries", kMaxEntries);
  cursor.require_elements(n_entries, kLeastEntryBytes);
  cursor.require_elements(n_tensors, kLeastTensorBytes);
  directory.metadata = read_metadata(cursor, n_entries);
  cursor.set_place("metadata");
  directory.alignment = read_alignment(cursor, directory.metadata);
  directory.tensors = read_tensors(cursor, n_tensors);
  const std::uint64_t directory_bytes = cursor.position();
  directory.data_offset = round_up(directory_bytes, directory.alignment);
  place_tensors(cursor, directory);
  const std::uint64_t end = check_extents(cursor, directory, directory_bytes);
  directory.padded_end = cursor.file_bytes() >= round_up(end, directory.alignment);
  return directory;
}

}  // namespace

std::string TensorInfo::describe() const {
  std::string text(format_info(format).name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text + " [" + number_list(std::span(dims).first(static_cast<std::size_t>(n_dims))) + "]";
}

Directory parse_directory(std::span<const std::byte> bytes, std::uint64_t file_bytes, const std::string& source) {
  Cursor cursor(bytes, file_bytes, source);
  return parse(cursor);
}

Directory read_directory(const File& file) {
  Cursor cursor(file, file.path().string());
  return parse(cursor);
}

}  // namespace quench::gguf
