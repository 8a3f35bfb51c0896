#include "cli/bench_report.h"

#include <fmt/format.h>

#include <optional>

#include "cli/bench_profile.h"
#include "cli/terminal.h"

namespace quench::cli {
namespace {

std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:.1f}", 100 * *share) : ""; }

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string csv_number(const std::optional<double>& number) { return number ? fmt::format("{:.6g}", *number) : ""; }

nlohmann::ordered_json json_number(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

std::string table_row(const BenchRow& row) {
  const Samples rates = row.rates();
  return fmt::format("{:<14} {:>7} {:>6} {:>10.2f} {:>9.2f} {:>9.2f} {:>7.2f} {:>6} {:>8.1f} {:>6}\n", row.test.name(), row.threads,
                     row.chunk, row.tokens_per_second(), rates.min(), rates.max(), row.gigabytes_per_second(), percent(row.read_share()),
                     row.gigaoperations_per_second(), percent(row.operation_share()));
}

/// One line for each number of threads.
std::string roofline_lines(const BenchReport& report) {
  std::string text;
  int threads = 0;
  for (const BenchRow& row : report.rows) {
    if (row.threads == threads) continue;
    threads = row.threads;
    text += fmt::format("roofline, {} threads: reads {:.2f} GB/s ({})", threads, row.roofline.bytes_per_second / 1e9,
                        human_bytes(report.probe_bytes));
    if (row.roofline.int8_per_second > 0) {
      text += fmt::format(", int8 dot products {:.0f} GOP/s, f32 fma {:.0f} GOP/s", row.roofline.int8_per_second / 1e9,
                          row.roofline.f32_per_second / 1e9);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> BenchReport::violations() const {
  std::vector<std::string> found;
  for (const BenchRow& row : rows) {
    if (const std::string violation = beyond_roofline(row, last_level_cache_bytes); !violation.empty()) found.push_back(violation);
  }
  return found;
}

std::string bench_table(const BenchReport& report) {
  std::string text = fmt::format("{}: {} on {}, weights {}, loaded in {:.2f} s\n\n", report.model, report.isa, report.processor,
                                 human_bytes(report.weight_bytes), report.load_seconds);
  text += fmt::format("{:<14} {:>7} {:>6} {:>10} {:>9} {:>9} {:>7} {:>6} {:>8} {:>6}\n", "test", "threads", "chunk", "tokens/s", "min",
                      "max", "GB/s", "%", "GOP/s", "%");
  for (const BenchRow& row : report.rows) text += table_row(row);
  text += "\n";
  if (report.probe_bytes > 0) text += roofline_lines(report);
  text += fmt::format("peak resident memory {}\n", human_bytes(report.peak_resident_bytes));
  for (const BenchRow& row : report.rows) {
    if (!row.profile.empty()) text += "\n" + profile_table(row);
  }
  if (report.join_seconds > 0) text += fmt::format("\na join of all threads takes {:.2f} us\n", 1e6 * report.join_seconds);
  return text;
}

std::string bench_csv(const BenchReport& report) {
  std::string text =
      "model,processor,isa,threads,chunk,test,depth,tokens,sequences,repetitions,tokens_per_second,min,max,stddev,gigabytes_per_second,"
      "read_share,gigaoperations_per_second,operation_share,peak_resident_bytes\n";
  for (const BenchRow& row : report.rows) {
    const Samples rates = row.rates();
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{},{:.6g},{},{}\n", csv_field(report.model),
                        csv_field(report.processor), report.isa, row.threads, row.chunk, row.test.name(), row.test.depth, row.test.tokens,
                        row.test.sequences, rates.values().size(), row.tokens_per_second(), rates.min(), rates.max(),
                        rates.standard_deviation(), row.gigabytes_per_second(), csv_number(row.read_share()),
                        row.gigaoperations_per_second(), csv_number(row.operation_share()), report.peak_resident_bytes);
  }
  return text;
}

nlohmann::ordered_json roofline_json(const Roofline& roofline) {
  return {{"bytes_per_second", roofline.bytes_per_second},
          {"int8_per_second", roofline.int8_per_second},
          {"f32_per_second", roofline.f32_per_second},
          {"bf16_per_second", roofline.bf16_per_second}};
}

nlohmann::ordered_json row_json(const BenchRow& row) {
  const Samples rates = row.rates();
  nlohmann::ordered_json json;
  json["test"] = row.test.name();
  json["threads"] = row.threads;
  json["chunk"] = row.chunk;
  json["depth"] = row.test.depth;
  json["tokens"] = row.test.tokens;
  json["sequences"] = row.test.sequences;
  json["tokens_per_second"] = row.tokens_per_second();
  json["min"] = rates.min();
  json["max"] = rates.max();
  json["stddev"] = rates.standard_deviation();
  json["repetitions"] = rates.values();
  json["bytes"] = row.cost.bytes();
  json["int8_operations"] = row.cost.int8_operations;
  json["f32_operations"] = row.cost.f32_operations;
  json["bf16_operations"] = row.cost.bf16_operations;
  json["gigabytes_per_second"] = row.gigabytes_per_second();
  json["gigaoperations_per_second"] = row.gigaoperations_per_second();
  json["read_share"] = json_number(row.read_share());
  json["operation_share"] = json_number(row.operation_share());
  json["roofline"] = roofline_json(row.roofline);
  if (!row.profile.empty()) json["profile"] = profile_json(row);
  return json;
}

nlohmann::ordered_json bench_json(const BenchReport& report) {
  nlohmann::ordered_json json;
  json["model"] = report.model;
  json["processor"] = report.processor;
  json["isa"] = report.isa;
  json["load_seconds"] = report.load_seconds;
  json["weight_bytes"] = report.weight_bytes;
  json["cache_bytes"] = report.cache_bytes;
  json["peak_resident_bytes"] = report.peak_resident_bytes;
  json["probe_bytes"] = report.probe_bytes;
  json["last_level_cache_bytes"] = report.last_level_cache_bytes;
  if (report.join_seconds > 0) json["join_seconds"] = report.join_seconds;
  json["results"] = nlohmann::ordered_json::array();
  for (const BenchRow& row : report.rows) json["results"].push_back(row_json(row));
  json["violations"] = report.violations();
  json["valid"] = report.violations().empty();
  return json;
}

}  // namespace quench::cli
