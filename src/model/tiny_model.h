#pragma once

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/scratch_folder.h"
#include "gguf/writer.h"
#include "model/forward.h"
#include "quant/format.h"

namespace quench {

/// A model file of a few kilobytes, tensor by tensor, so that a test can bend any part of it. Test code only.
class TinyModel {
 public:
  static constexpr std::size_t kLayers = 3;
  static constexpr std::size_t kEmbed = 64;
  static constexpr std::size_t kFfn = 96;
  static constexpr std::size_t kHeads = 4;
  static constexpr std::size_t kKvHeads = 2;
  static constexpr std::size_t kHeadDim = 32;
  static constexpr std::size_t kVocab = 100;
  static constexpr std::size_t kExperts = 6;
  static constexpr std::size_t kExpertsUsed = 3;
  static constexpr std::size_t kExpertFfn = 32;

  struct Entry {
    std::string name;
    Format format;
    std::vector<std::uint64_t> dims;
    std::vector<float> values;
  };

  explicit TinyModel(std::string architecture, Format format = Format::kQ8_0) : name(std::move(architecture)), format_(format) {
    const std::string prefix = name + ".";
    metadata.add("general.architecture", name);
    metadata.add(prefix + "block_count", std::uint32_t{kLayers});
    metadata.add(prefix + "context_length", std::uint32_t{4096});
    metadata.add(prefix + "embedding_length", std::uint32_t{kEmbed});
    metadata.add(prefix + "feed_forward_length", std::uint32_t{kFfn});
    metadata.add(prefix + "attention.head_count", std::uint32_t{kHeads});
    metadata.add(prefix + "attention.head_count_kv", std::uint32_t{kKvHeads});
    metadata.add(prefix + "attention.key_length", std::uint32_t{kHeadDim});
    metadata.add(prefix + "attention.value_length", std::uint32_t{kHeadDim});
    metadata.add(prefix + "attention.layer_norm_rms_epsilon", 1e-6f);
    if (has_experts()) {
      metadata.add(prefix + "expert_count", std::uint32_t{kExperts});
      metadata.add(prefix + "expert_used_count", std::uint32_t{kExpertsUsed});
      metadata.add(prefix + "expert_feed_forward_length", std::uint32_t{kExpertFfn});
    }
    add_tensors();
  }

  void set(const std::string& key, gguf::Value value) { metadata.set(name + "." + key, std::move(value)); }

  Entry& tensor(std::string_view tensor_name) {
    for (Entry& entry : tensors) {
      if (entry.name == tensor_name) return entry;
    }
    throw std::logic_error("no tensor " + std::string(tensor_name));
  }

  void add(const std::string& tensor_name, Format format, std::vector<std::uint64_t> dims, float around, float spread) {
    Entry entry{tensor_name, format, std::move(dims), {}};
    std::uint64_t count = 1;
    for (const std::uint64_t dim : entry.dims) count *= dim;
    for (std::uint64_t i = 0; i < count; ++i) {
      entry.values.push_back(around + spread * static_cast<float>(2.0 * random_.uniform() - 1.0));
    }
    tensors.push_back(std::move(entry));
  }

  void write(const std::filesystem::path& path) const {
    std::vector<gguf::TensorPlan> plans;
    for (const Entry& entry : tensors) plans.push_back({.name = entry.name, .format = entry.format, .dims = entry.dims});
    gguf::Writer writer(path, metadata, std::move(plans));
    for (const Entry& entry : tensors) {
      const FormatInfo& format = format_info(entry.format);
      const std::size_t blocks = entry.values.size() / static_cast<std::size_t>(format.block_elements);
      std::vector<std::byte> bytes(blocks * static_cast<std::size_t>(format.block_bytes));
      format.encode(entry.values.data(), blocks, bytes.data());
      writer.write(bytes);
    }
    writer.finish();
  }

  /// Written and loaded.
  [[nodiscard]] Model load(ThreadPool& pool, const LoadOptions& options = {}) const {
    const ScratchFolder folder;
    write(folder / "tiny.gguf");
    const gguf::Reader reader(folder / "tiny.gguf");
    return Model::load(reader, options, pool);
  }

  std::string name;
  gguf::Metadata metadata;
  std::vector<Entry> tensors;

 private:
  [[nodiscard]] bool has_experts() const { return name.ends_with("moe"); }

  void add_matrix(const std::string& tensor_name, std::uint64_t columns, std::uint64_t rows) {
    add(tensor_name, format_, {columns, rows}, 0.0f, 0.3f);
  }
  void add_vector(const std::string& tensor_name, std::uint64_t size, float around) {
    add(tensor_name, Format::kF32, {size}, around, 0.2f);
  }

  void add_tensors() {
    add_matrix("token_embd.weight", kEmbed, kVocab);
    for (std::size_t i = 0; i < kLayers; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      add_vector(block + "attn_norm.weight", kEmbed, 1.0f);
      add_matrix(block + "attn_q.weight", kEmbed, kHeads * kHeadDim);
      add_matrix(block + "attn_k.weight", kEmbed, kKvHeads * kHeadDim);
      add_matrix(block + "attn_v.weight", kEmbed, kKvHeads * kHeadDim);
      add_matrix(block + "attn_output.weight", kHeads * kHeadDim, kEmbed);
      add_vector(block + "ffn_norm.weight", kEmbed, 1.0f);
      if (has_experts()) {
        add_experts(block);
      } else {
        add_dense(block, ".weight");
      }
      add_family_vectors(block);
    }
    add_vector("output_norm.weight", kEmbed, 1.0f);
  }

  void add_dense(const std::string& block, const std::string& suffix) {
    add_matrix(block + "ffn_gate" + suffix, kEmbed, kFfn);
    add_matrix(block + "ffn_up" + suffix, kEmbed, kFfn);
    add_matrix(block + "ffn_down" + suffix, kFfn, kEmbed);
  }

  void add_experts(const std::string& block) {
    add(block + "ffn_gate_inp.weight", Format::kF32, {kEmbed, kExperts}, 0.0f, 0.5f);
    add(block + "ffn_gate_exps.weight", format_, {kEmbed, kExpertFfn, kExperts}, 0.0f, 0.3f);
    add(block + "ffn_up_exps.weight", format_, {kEmbed, kExpertFfn, kExperts}, 0.0f, 0.3f);
    add(block + "ffn_down_exps.weight", format_, {kExpertFfn, kEmbed, kExperts}, 0.0f, 0.3f);
    if (name != "qwen2moe") return;
    add(block + "ffn_gate_inp_shexp.weight", Format::kF32, {kEmbed}, 0.0f, 0.5f);
    add_dense(block, "_shexp.weight");
  }

  void add_family_vectors(const std::string& block) {
    if (name == "qwen2" || name == "qwen2moe") {
      add_vector(block + "attn_q.bias", kHeads * kHeadDim, 0.0f);
      add_vector(block + "attn_k.bias", kKvHeads * kHeadDim, 0.0f);
      add_vector(block + "attn_v.bias", kKvHeads * kHeadDim, 0.0f);
    }
    if (name == "qwen3" || name == "qwen3moe" || name == "gemma3") {
      add_vector(block + "attn_q_norm.weight", kHeadDim, 1.0f);
      add_vector(block + "attn_k_norm.weight", kHeadDim, 1.0f);
    }
    if (name == "gemma3") {
      add_vector(block + "post_attention_norm.weight", kEmbed, 1.0f);
      add_vector(block + "post_ffw_norm.weight", kEmbed, 1.0f);
    }
  }

  Format format_;
  Xoshiro256 random_{42};
};

/// Token ids that depend on nothing but `n`.
inline std::vector<TokenId> tiny_tokens(std::size_t n) {
  Xoshiro256 random(7);
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < n; ++i) tokens.push_back(static_cast<TokenId>(random.below(TinyModel::kVocab)));
  return tokens;
}

}  // namespace quench
