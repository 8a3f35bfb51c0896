#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace quench::gguf {

/// Value types as numbered in the file.
enum class ValueType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

[[nodiscard]] std::string_view value_type_name(ValueType type) noexcept;

/// An array keeps its elements in the width of the file, so that a file can be written again byte for byte.
using Array = std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>, std::vector<std::int16_t>,
                           std::vector<std::uint32_t>, std::vector<std::int32_t>, std::vector<float>, std::vector<bool>,
                           std::vector<std::string>, std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;

using Value = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float, bool, std::string,
                           std::uint64_t, std::int64_t, double, Array>;

[[nodiscard]] ValueType type_of(const Value& value) noexcept;
[[nodiscard]] ValueType element_type_of(const Array& array) noexcept;
[[nodiscard]] std::size_t size_of(const Array& array) noexcept;
/// "uint32", "array of string"
[[nodiscard]] std::string describe_type(const Value& value);

/// Lets a map keyed by std::string be searched with a std::string_view.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};
using TextIndex = std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>>;

/// The key-value part of a GGUF file, in file order, unique keys. Typed reads check the type and name the key in the error
/// (Error(kBadFile)); an integer of any width is accepted where it fits.
class Metadata {
 public:
  struct Entry {
    std::string key;
    Value value;
  };

  /// Throws Error(kBadFile) for a duplicate key.
  void add(std::string key, Value value);
  /// Replaces or adds.
  void set(std::string key, Value value);

  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] bool contains(std::string_view key) const { return find(key) != nullptr; }

  /// Absent key: nothing. Present with another type or out of range: Error(kBadFile) naming key, type found and type wanted.
  [[nodiscard]] std::optional<std::uint64_t> unsigned_at(std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> integer_at(std::string_view key) const;
  [[nodiscard]] std::optional<double> number_at(std::string_view key) const;
  [[nodiscard]] std::optional<bool> bool_at(std::string_view key) const;
  [[nodiscard]] const std::string* string_at(std::string_view key) const;
  [[nodiscard]] const std::vector<std::string>* strings_at(std::string_view key) const;
  [[nodiscard]] const std::vector<float>* floats_at(std::string_view key) const;
  /// An array of any integer width, widened.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers_at(std::string_view key) const;

 private:
  std::vector<Entry> entries_;
  TextIndex index_;
};

}  // namespace quench::gguf
