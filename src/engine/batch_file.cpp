#include "engine/batch_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace quench {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& key, std::string_view wanted) {
  throw_bad_request(fmt::format("\"{}\" must be {}", key, wanted));
}

double number(const std::string& key, const Json& value) {
  if (!value.is_number()) refuse(key, "a number");
  return value.get<double>();
}

std::uint64_t whole_number(const std::string& key, const Json& value, std::uint64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) refuse(key, fmt::format("a whole number from 0 to {}", most));
  return value.get<std::uint64_t>();
}

const std::string& text(const std::string& key, const Json& value) {
  if (!value.is_string()) refuse(key, "a text");
  return value.get_ref<const std::string&>();
}

std::vector<std::string> texts(const std::string& key, const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) refuse(key, "a text or an array of texts");
  std::vector<std::string> all;
  for (const Json& one : value) all.push_back(text(key, one));
  return all;
}

std::vector<ChatMessage> messages(const std::string& key, const Json& value) {
  constexpr const char* kWanted = "an array of {\"role\": \"system\" | \"user\" | \"assistant\", \"content\": \"...\"}";
  if (!value.is_array() || value.empty()) refuse(key, kWanted);
  std::vector<ChatMessage> all;
  for (const Json& one : value) {
    if (!one.is_object() || one.size() != 2 || !one.contains("role") || !one.contains("content")) refuse(key, kWanted);
    const auto role = role_from_name(text(key, one["role"]));
    if (!role) refuse(key, kWanted);
    all.push_back({*role, text(key, one["content"])});
  }
  return all;
}

void read_key(BatchRequest& request, const std::string& key, const Json& value) {
  SamplerSettings& sampler = request.sampler;
  if (key == "id") {
    if (!value.is_primitive()) refuse(key, "a text, a number, true, false or null");
    request.id_json = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  } else if (key == "prompt") {
    request.prompt = text(key, value);
  } else if (key == "messages") {
    request.messages = messages(key, value);
  } else if (key == "max_tokens") {
    request.max_tokens = whole_number(key, value, std::numeric_limits<std::int32_t>::max());
  } else if (key == "stop") {
    request.stop_texts = texts(key, value);
  } else if (key == "temperature") {
    sampler.temperature = number(key, value);
  } else if (key == "top_k") {
    sampler.top_k = static_cast<int>(whole_number(key, value, std::numeric_limits<std::int32_t>::max()));
  } else if (key == "top_p") {
    sampler.top_p = number(key, value);
  } else if (key == "min_p") {
    sampler.min_p = number(key, value);
  } else if (key == "repeat_penalty") {
    sampler.repeat_penalty = number(key, value);
  } else if (key == "frequency_penalty") {
    sampler.frequency_penalty = number(key, value);
  } else if (key == "presence_penalty") {
    sampler.presence_penalty = number(key, value);
  } else if (key == "seed") {
    sampler.seed = whole_number(key, value, std::numeric_limits<std::uint64_t>::max());
  } else {
    throw_bad_request(fmt::format("\"{}\" is no key of a request", key));
  }
}

Json result_head(const BatchResultKey& key, const std::string& id_json) {
  return {{"line", key.line}, {"input", fmt::format("{:016x}", key.input_hash)}, {"id", Json::parse(id_json)}};
}

std::string as_line(const Json& result) { return result.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

BatchRequest read_batch_request(std::string_view line, const SamplerSettings& defaults) {
  const Json document = Json::parse(line, nullptr, false);
  if (!document.is_object()) throw_bad_request("the line is no JSON object");
  BatchRequest request;
  request.sampler = defaults;
  for (const auto& [key, value] : document.items()) read_key(request, key, value);
  if (request.prompt.has_value() == !request.messages.empty()) throw_bad_request("give either \"prompt\" or \"messages\"");
  return request;
}

std::uint64_t batch_input_hash(std::string_view line) noexcept { return XXH3_64bits(line.data(), line.size()); }

std::string write_batch_result(const BatchResultKey& key, const std::string& id_json, const GenerationResult& result) {
  Json line = result_head(key, id_json);
  line["text"] = result.text;
  line["finish"] = finish_name(result.finish);
  line["prompt_tokens"] = result.stats.prompt_tokens;
  line["cached_tokens"] = result.stats.cached_tokens;
  line["generated_tokens"] = result.stats.generated_tokens;
  return as_line(line);
}

std::string write_batch_error(const BatchResultKey& key, const std::string& id_json, std::string_view message) {
  Json line = result_head(key, id_json);
  line["error"] = message;
  return as_line(line);
}

BatchResultKey read_batch_result_key(std::string_view line) {
  const Json document = Json::parse(line, nullptr, false);
  if (!document.is_object() || !document.contains("line") || !document.contains("input"))
    throw_bad_file("the line is no result of a batch");
  const Json& number = document["line"];
  const Json& hash = document["input"];
  if (!number.is_number_unsigned() || !hash.is_string()) throw_bad_file("the line is no result of a batch");
  const auto& digits = hash.get_ref<const std::string&>();
  if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw_bad_file("the line is no result of a batch");
  }
  return {.line = number.get<std::uint64_t>(), .input_hash = std::stoull(digits, nullptr, 16)};
}

}  // namespace quench
