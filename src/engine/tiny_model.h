#pragma once

#include <memory>
#include <string>

#include "base/scratch_folder.h"
#include "base/thread_pool.h"
#include "gguf/reader.h"
#include "kernels/compute.h"
#include "model/forward.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/synth.h"
#include "text/tokenizer.h"

namespace quench {

/// A random model of a few hundred kilobytes with its tokenizer, for tests of what lies above the model.
class TinyModel {
 public:
  /// One per family, made on first use.
  static const TinyModel& of(const std::string& family) {
    static const TinyModel qwen3("qwen3");
    static const TinyModel gemma3("gemma3");
    return family == "gemma3" ? gemma3 : qwen3;
  }

  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }
  [[nodiscard]] Forward forward(std::size_t chunk = 512) const {
    return Forward(*model_, Compute{kernels_for(selected_isa()), *pool_}, {.chunk = chunk});
  }
  [[nodiscard]] std::unique_ptr<KvCache> cache(std::size_t context) const {
    return std::make_unique<KvCache>(model_->kv_layout(), KvCache::Options{.budget_bytes = 1u << 30, .context = context});
  }

 private:
  explicit TinyModel(const std::string& family) : pool_(std::make_unique<ThreadPool>(1)) {
    const ScratchFolder folder;
    const auto path = folder / "model.gguf";
    write_synthetic_model({.family = family, .size = "tiny", .format = "q8_0", .seed = 3}, path);
    {
      const gguf::Reader reader(path);
      model_ = std::make_unique<Model>(Model::load(reader, {}, *pool_));
      tokenizer_ = Tokenizer::from_metadata(reader.metadata());
    }
  }

  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace quench
