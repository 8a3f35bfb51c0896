#include "golden_logits.h"

#include <bit>
#include <cctype>
#include <fstream>
#include <iomanip>
#include <span>

#include "base/random.h"
#include "base/scratch_folder.h"
#include "base/thread_pool.h"
#include "gguf/reader.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/synth.h"
#include "quant/format.h"

namespace quench::golden {
namespace {

static_assert(std::endian::native == std::endian::little, "the hashes are of little-endian f32");

constexpr std::size_t kTokens = 75;  // one full page of the cache and a partial one
constexpr std::size_t kChunk = 19;
constexpr std::uint64_t kVocabulary = 512;

/// FNV-1a, 64 bits: a few lines that need no library on any machine.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    for (const std::byte byte : bytes) value_ = (value_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3u;
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const FormatInfo& format : all_formats()) all.push_back({"qwen3", std::string(format.name)});
  for (const char* family : {"qwen2", "llama", "gemma3", "qwen3moe", "qwen2moe"}) all.push_back({family, "q8_0"});
  all.push_back({"qwen3", "q8_0", "linear"});
  all.push_back({"qwen3", "q8_0", "yarn"});
  all.push_back({"llama", "q8_0", "llama3"});
  return all;
}

Hashes compute(const Case& entry, const KernelTable& kernels, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / (entry.name() + ".gguf");
  SynthSpec spec;
  spec.family = entry.family;
  spec.size = "tiny";
  spec.format = entry.format;
  spec.vocabulary_size = kVocabulary;
  spec.rope_scaling = entry.rope_scaling;
  write_synthetic_model(spec, path);

  Hash file;
  const std::vector<char> bytes = bytes_of(path);
  file.add(std::as_bytes(std::span(bytes)));
  ThreadPool pool(2);
  const Model model = Model::load(gguf::Reader(path), {}, pool);
  Forward forward(model, {kernels, pool}, {.chunk = kChunk});
  KvCache cache(model.kv_layout(), {.budget_bytes = model.kv_layout().bytes_for(kTokens, kChunk), .context = kTokens});
  KvSequence sequence(cache);
  Xoshiro256 random(3);
  std::vector<TokenId> tokens(kTokens);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.below(model.config().n_vocab));
  Hash logits;
  forward.prefill_all(sequence, 0, tokens, [&](std::size_t, std::span<const float> row) { logits.add(std::as_bytes(row)); });
  std::filesystem::remove(path);
  return {file.value(), logits.value()};
}

std::map<std::string, Hashes> read(const std::filesystem::path& file) {
  std::map<std::string, Hashes> hashes;
  std::ifstream stream(file);
  std::string name;
  Hashes entry;
  while (stream >> name >> std::hex >> entry.file >> entry.logits) hashes[name] = entry;
  return hashes;
}

void write(const std::filesystem::path& file, const std::map<std::string, Hashes>& hashes) {
  std::ofstream stream(file);
  for (const auto& [name, entry] : hashes) {
    stream << name << ' ' << std::hex << std::setfill('0') << std::setw(16) << entry.file << ' ' << std::setw(16) << entry.logits << '\n';
  }
}

}  // namespace quench::golden
