#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>

#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/terminal.h"
#include "model/config.h"
#include "model/family.h"

namespace quench::cli {
namespace {

constexpr std::size_t kShownArrayElements = 6;
constexpr std::size_t kShownStringBytes = 120;

struct InfoOptions {
  ModelOptions model;
  bool tensors = false;
  bool full = false;
};

std::string shown(const std::string& text, bool full) {
  if (full || text.size() <= kShownStringBytes) return text;
  return fmt::format("{}... ({} bytes)", text.substr(0, kShownStringBytes), text.size());
}

std::string one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\n");
  return text;
}

template <typename Element>
std::string element_text(const Element& element) {
  if constexpr (std::is_same_v<Element, std::string>) {
    return "\"" + one_line(shown(element, false)) + "\"";
  } else {
    return fmt::format("{}", element);
  }
}

std::string array_text(const gguf::Array& array, bool full) {
  return std::visit(
      [full](const auto& elements) {
        using Element = typename std::decay_t<decltype(elements)>::value_type;
        std::string text = fmt::format("[{}] ", elements.size());
        for (std::size_t i = 0; i < elements.size() && (full || i < kShownArrayElements); ++i) {
          text += (i > 0 ? ", " : "") + element_text<Element>(elements[i]);
        }
        return !full && elements.size() > kShownArrayElements ? text + ", ..." : text;
      },
      array);
}

std::string value_text(const gguf::Value& value, bool full) {
  return std::visit(
      [full](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, gguf::Array>) {
          return array_text(held, full);
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return one_line(shown(held, full));
        } else {
          return fmt::format("{}", held);
        }
      },
      value);
}

void print_machine() {
  std::string isas;
  for (const Isa isa : available_isas()) isas += (isas.empty() ? "" : ", ") + std::string(isa_name(isa));
  const KernelTable& table = kernels_for(selected_isa());
  std::string refused;
  for (const Refusal& refusal : cpu_features().refusals)
    refused += fmt::format("  refused              {}\n", cpu_features().describe(refusal));
  write_answer(
      fmt::format("machine\n  processor            {}\n  instruction sets     {}\n{}  kernels              {}\n  threads              {}\n"
                  "  memory available     {}\n",
                  cpu_features().processor, isas, refused, table.name, default_thread_count(), human_bytes(available_memory_bytes())));
}

void print_kernel_paths() {
  std::string text = "kernels by operation\n";
  for (const auto& [operation, path] : kernel_paths(kernels_for(selected_isa()))) text += fmt::format("  {:<20} {}\n", operation, path);
  write_answer(text);
}

void print_families() { write_answer(fmt::format("families\n  {}\n", family_names())); }

void print_file(const gguf::Reader& reader, bool full) {
  std::string text = fmt::format(
      "file\n  path                 {}\n  version              GGUF v{}, alignment {}, {} {}\n  size                 {}\n"
      "metadata\n",
      reader.path().string(), reader.version(), reader.alignment(), reader.part_count(), reader.part_count() == 1 ? "file" : "files",
      human_bytes(reader.total_file_bytes()));
  for (const auto& entry : reader.metadata().entries()) text += fmt::format("  {} = {}\n", entry.key, value_text(entry.value, full));
  write_answer(text);
}

void print_tensors(const gguf::Reader& reader, bool each) {
  std::array<std::uint64_t, kFormatSlots> bytes{};
  std::array<std::uint64_t, kFormatSlots> counts{};
  std::string text = fmt::format("tensors\n  {} in all\n", reader.tensors().size());
  for (const auto& tensor : reader.tensors()) {
    const auto slot = static_cast<std::size_t>(tensor.format);
    bytes[slot] += tensor.size_bytes;
    ++counts[slot];
    if (each) text += fmt::format("  {:<32} {}\n", tensor.name, tensor.describe());
  }
  for (const FormatInfo& format : all_formats()) {
    const auto slot = static_cast<std::size_t>(format.format);
    if (counts[slot] > 0) text += fmt::format("  {:<20} {} tensors, {}\n", format.name, counts[slot], human_bytes(bytes[slot]));
  }
  write_answer(text);
}

/// What running the model takes, without loading it.
void print_plan(const gguf::Reader& reader, const InfoOptions& options) {
  if (reader.tensors().empty()) {
    write_answer("memory plan\n  a vocabulary only: nothing to run\n");
    return;
  }
  ModelConfig config;
  try {
    config = read_config(reader.metadata());
    config.n_vocab = static_cast<std::size_t>(reader.tensor("token_embd.weight").rows());
  } catch (const Error& error) {
    write_answer(fmt::format("memory plan\n  not runnable: {}\n", error.what()));
    return;
  }
  std::uint64_t weight_bytes = 0;
  for (const auto& tensor : reader.tensors()) weight_bytes += tensor.size_bytes;
  const CacheType type = options.model.parsed_cache_type();
  const KvLayout layout = make_kv_layout(config, type);
  const int threads = options.model.threads > 0 ? options.model.threads : default_thread_count();
  const auto chunk = static_cast<std::size_t>(options.model.chunk);
  const std::uint64_t available = available_memory_bytes();
  const std::uint64_t budget = available > weight_bytes ? (available - weight_bytes) / 2 : 0;
  write_answer(
      fmt::format("memory plan\n  weights              {}\n  cache per position   {} ({})\n  cache at full context {} for {} positions\n"
                  "  cache budget         {} (half of what is free after the weights)\n  scratch              {} in chunks of {}\n",
                  human_bytes(weight_bytes), human_bytes(layout.bytes_per_position()), cache_type_name(type),
                  human_bytes(layout.bytes_for(config.context_length, chunk)), config.context_length, human_bytes(budget),
                  human_bytes(forward_scratch_bytes(config, chunk, static_cast<std::size_t>(threads))), chunk));
}

int run_info(InfoOptions options) {
  print_machine();
  if (options.model.model.empty() && options.model.words.empty()) {
    print_kernel_paths();
    print_families();
    return 0;
  }
  const gguf::Reader reader(options.model.take_model(0));
  print_file(reader, options.full);
  print_tensors(reader, options.tensors);
  print_plan(reader, options);
  if (options.full) {
    print_kernel_paths();
    print_families();
  }
  return 0;
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand("info", "Machine, kernels, and what a model file holds and needs");
  command->footer("Example:\n  quench info model.gguf --tensors");
  add_model_argument(*command, options->model, "[MODEL]", "GGUF file; without it, the machine and the kernels");
  add_compute_options(*command, options->model);
  command->add_flag("--tensors", options->tensors, "List every tensor");
  command->add_flag("--full", options->full, "Metadata without shortening, and the kernels");
  command->callback([options, &action] { action = [options] { return run_info(*options); }; });
}

}  // namespace quench::cli
