#include "gguf/rewrite.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gguf/writer.h"

namespace quench::gguf {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

Metadata joined_metadata(const Reader& model) {
  if (model.part_count() == 1) return model.metadata();
  Metadata joined;
  for (const Metadata::Entry& entry : model.metadata().entries()) {
    if (!entry.key.starts_with("split.")) joined.add(entry.key, entry.value);
  }
  return joined;
}

}  // namespace

void rewrite(const Reader& model, const std::filesystem::path& path) {
  std::vector<TensorPlan> plans;
  plans.reserve(model.tensors().size());
  for (const TensorInfo& tensor : model.tensors()) plans.push_back(plan_of(tensor));
  Writer writer(path, joined_metadata(model), std::move(plans), {model.alignment(), model.version(), model.padded_end()});
  std::vector<std::byte> piece;
  for (const TensorInfo& tensor : model.tensors()) {
    for (std::uint64_t done = 0; done < tensor.size_bytes; done += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, tensor.size_bytes - done)));
      model.read(tensor, done, piece);
      writer.write(piece);
    }
  }
  writer.finish();
}

}  // namespace quench::gguf
