#include "gguf/metadata.h"

#include <array>
#include <concepts>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace quench::gguf {
namespace {

// The alternatives of Value and of Array, in their order; an Array has no array among them.
constexpr std::array kValueOrder = {ValueType::kUint8, ValueType::kInt8,    ValueType::kUint16, ValueType::kInt16,  ValueType::kUint32,
                                    ValueType::kInt32, ValueType::kFloat32, ValueType::kBool,   ValueType::kString, ValueType::kUint64,
                                    ValueType::kInt64, ValueType::kFloat64, ValueType::kArray};
static_assert(kValueOrder.size() == std::variant_size_v<Value>);
static_assert(kValueOrder.size() == std::variant_size_v<Array> + 1);

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

[[noreturn]] void wrong_type(std::string_view key, const Value& found, std::string_view wanted) {
  throw_bad_file("metadata: " + std::string(key) + " is " + describe_type(found) + ", expected " + std::string(wanted));
}

/// An integer of any width as a `To`, where it fits.
template <typename To>
To integer_from(std::string_view key, const Value& value, std::string_view wanted) {
  return std::visit(
      [&]<typename T>(const T& held) -> To {
        if constexpr (Integer<T>) {
          if (const auto fitting = checked_cast<To>(held)) return *fitting;
          throw_bad_file("metadata: " + std::string(key) + " is " + std::to_string(held) + ", expected " + std::string(wanted));
        } else {
          wrong_type(key, value, wanted);
        }
      },
      value);
}

/// The array at `key` when its elements are exactly `T`; nullptr when the key is absent.
template <typename T>
const std::vector<T>* array_at(const Metadata& metadata, std::string_view key, std::string_view wanted) {
  const Value* value = metadata.find(key);
  if (value == nullptr) return nullptr;
  const Array* array = std::get_if<Array>(value);
  const std::vector<T>* elements = array != nullptr ? std::get_if<std::vector<T>>(array) : nullptr;
  if (elements == nullptr) wrong_type(key, *value, wanted);
  return elements;
}

}  // namespace

std::string_view value_type_name(ValueType type) noexcept {
  switch (type) {
    case ValueType::kUint8: return "uint8";
    case ValueType::kInt8: return "int8";
    case ValueType::kUint16: return "uint16";
    case ValueType::kInt16: return "int16";
    case ValueType::kUint32: return "uint32";
    case ValueType::kInt32: return "int32";
    case ValueType::kFloat32: return "float32";
    case ValueType::kBool: return "bool";
    case ValueType::kString: return "string";
    case ValueType::kArray: return "array";
    case ValueType::kUint64: return "uint64";
    case ValueType::kInt64: return "int64";
    case ValueType::kFloat64: return "float64";
  }
  return "unknown";
}

ValueType type_of(const Value& value) noexcept { return kValueOrder[value.index()]; }

ValueType element_type_of(const Array& array) noexcept { return kValueOrder[array.index()]; }

std::size_t size_of(const Array& array) noexcept {
  return std::visit([](const auto& elements) { return elements.size(); }, array);
}

std::string describe_type(const Value& value) {
  const Array* array = std::get_if<Array>(&value);
  if (array == nullptr) return std::string(value_type_name(type_of(value)));
  return "array of " + std::string(value_type_name(element_type_of(*array)));
}

void Metadata::add(std::string key, Value value) {
  if (!index_.emplace(key, entries_.size()).second) throw_bad_file("metadata: key " + key + " appears twice");
  entries_.push_back({std::move(key), std::move(value)});
}

void Metadata::set(std::string key, Value value) {
  if (const auto found = index_.find(key); found != index_.end()) {
    entries_[found->second].value = std::move(value);
    return;
  }
  add(std::move(key), std::move(value));
}

const Value* Metadata::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

std::optional<std::uint64_t> Metadata::unsigned_at(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return integer_from<std::uint64_t>(key, *value, "an unsigned integer");
}

std::optional<std::int64_t> Metadata::integer_at(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return integer_from<std::int64_t>(key, *value, "an integer of at most 63 bits");
}

std::optional<double> Metadata::number_at(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return std::visit(
      [&]<typename T>(const T& held) -> double {
        if constexpr (Integer<T> || std::floating_point<T>) {
          return static_cast<double>(held);
        } else {
          wrong_type(key, *value, "a number");
        }
      },
      *value);
}

std::optional<bool> Metadata::bool_at(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool* held = std::get_if<bool>(value);
  if (held == nullptr) wrong_type(key, *value, "bool");
  return *held;
}

const std::string* Metadata::string_at(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return nullptr;
  const std::string* held = std::get_if<std::string>(value);
  if (held == nullptr) wrong_type(key, *value, "string");
  return held;
}

const std::vector<std::string>* Metadata::strings_at(std::string_view key) const {
  return array_at<std::string>(*this, key, "array of string");
}

const std::vector<float>* Metadata::floats_at(std::string_view key) const { return array_at<float>(*this, key, "array of float32"); }

std::optional<std::vector<std::int64_t>> Metadata::integers_at(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const Array* array = std::get_if<Array>(value);
  if (array == nullptr) wrong_type(key, *value, "an array of integers");
  return std::visit(
      [&]<typename T>(const std::vector<T>& elements) -> std::vector<std::int64_t> {
        if constexpr (Integer<T>) {
          std::vector<std::int64_t> widened;
          widened.reserve(elements.size());
          for (const T element : elements) {
            const auto fitting = checked_cast<std::int64_t>(element);
            if (!fitting)
              throw_bad_file("metadata: " + std::string(key) + " holds " + std::to_string(element) + ", expected at most 63 bits");
            widened.push_back(*fitting);
          }
          return widened;
        } else {
          wrong_type(key, *value, "an array of integers");
        }
      },
      *array);
}

}  // namespace quench::gguf
