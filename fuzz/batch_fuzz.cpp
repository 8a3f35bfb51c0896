// Any bytes as a line of a batch file: a request that is in range, or Error(kBadRequest). Any bytes as a line of results: a key, or
// Error(kBadFile); and the result of a request, written, reads back as its key.
// usage: batch_fuzz NEW_CORPUS tests/corpus/batch

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/batch_file.h"

namespace {

using namespace quench;

[[noreturn]] void defect(const char* what) {
  (void)std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void check_result(std::string_view line, const std::string& id_json) {
  const BatchResultKey key{.line = line.size() + 1, .input_hash = batch_input_hash(line)};
  GenerationResult result;
  result.text = line;
  for (const std::string& written : {write_batch_result(key, id_json, result), write_batch_error(key, id_json, line)}) {
    if (written.find('\n') + 1 != written.size()) defect("a result is not one line");
    if (read_batch_result_key(written) != key) defect("a result has another key");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  std::string id_json = "null";
  try {
    const BatchRequest request = read_batch_request(line, {});
    if (request.prompt.has_value() == !request.messages.empty()) defect("neither prompt nor messages, or both");
    id_json = request.id_json;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadRequest) defect(error.what());
  }
  check_result(line, id_json);
  try {
    (void)read_batch_result_key(line);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadFile) defect(error.what());
  }
  return 0;
}
