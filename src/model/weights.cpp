#include "model/weights.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "base/aligned.h"
#include "base/checked.h"
#include "base/error.h"
#include "model/tensor_plan.h"
#include "quant/format.h"

namespace quench {
namespace {

// Large enough that a read runs at the disk's full rate, small enough that a thread's buffer stays in its L2 between reading and packing.
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
// What the kernels' aligned loads want.
constexpr std::size_t kWeightAlignment = 64;
// Between two reports of progress: at 1 GB/s, four a second.
constexpr std::uint64_t kBatchBytes = std::uint64_t{256} << 20;

/// Consecutive rows of one tensor: what one thread reads and packs at a time.
struct Piece {
  std::size_t target;
  std::size_t first_row;
  std::size_t n_rows;
  std::uint64_t offset;  ///< in the tensor
  std::uint64_t bytes;
};

std::vector<Piece> cut_pieces(std::span<const TensorTarget> targets) {
  std::vector<Piece> pieces;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const gguf::TensorInfo& tensor = *targets[t].tensor;
    const std::uint64_t row = tensor.size_bytes / tensor.rows();
    const auto rows = static_cast<std::size_t>(tensor.rows());
    const auto fitting = static_cast<std::size_t>(kPieceBytes / row) / kTileRows * kTileRows;
    const std::size_t step = targets[t].matrix == nullptr ? rows : std::max(fitting, kTileRows);
    for (std::size_t first = 0; first < rows; first += step) {
      const std::size_t n = std::min(step, rows - first);
      pieces.push_back({.target = t, .first_row = first, .n_rows = n, .offset = first * row, .bytes = n * row});
    }
  }
  return pieces;
}

/// The order of the file, so that it is read from front to back.
void sort_by_place(std::vector<Piece>& pieces, std::span<const TensorTarget> targets) {
  std::ranges::sort(pieces, {}, [&](const Piece& piece) {
    const gguf::TensorInfo& tensor = *targets[piece.target].tensor;
    return std::pair(tensor.part, tensor.file_offset + piece.offset);
  });
}

/// Keeps, of the errors that threads run into, the one of the first tensor in layer order. Tensors behind a failed one need not be read.
class FirstError {
 public:
  void report(std::size_t target, const Error& error) noexcept {
    const std::scoped_lock lock(mutex_);
    if (target_.load(std::memory_order_relaxed) <= target) return;
    target_.store(target, std::memory_order_relaxed);
    error_ = error;
  }
  [[nodiscard]] bool is_before(std::size_t target) const noexcept { return target_.load(std::memory_order_relaxed) <= target; }
  void rethrow() const {
    if (error_) throw Error(*error_);
  }

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> target_ = std::numeric_limits<std::size_t>::max();
  std::optional<Error> error_;
};

void load_piece(const gguf::Reader& reader, const TensorTarget& target, const Piece& piece, std::span<std::byte> buffer) {
  const auto bytes = buffer.first(piece.bytes);
  reader.read(*target.tensor, piece.offset, bytes);
  if (target.matrix != nullptr) {
    target.matrix->pack_rows(piece.first_row, bytes);
    return;
  }
  const FormatInfo& format = format_info(target.tensor->format);
  format.decode(bytes.data(), bytes.size() / static_cast<std::size_t>(format.block_bytes), target.vector);
}

void load_pieces(const gguf::Reader& reader, std::span<const TensorTarget> targets, std::span<const Piece> pieces,
                 const LoadProgress& progress, ThreadPool& pool) {
  std::uint64_t total = 0;
  std::uint64_t largest = 0;
  for (const Piece& piece : pieces) {
    total += piece.bytes;
    largest = std::max(largest, piece.bytes);
  }
  std::vector<AlignedBuffer> buffers;
  for (int i = 0; i < pool.thread_count(); ++i) buffers.emplace_back(static_cast<std::size_t>(largest), "load buffer");

  FirstError first_error;
  std::uint64_t done = 0;
  if (progress) progress(0, total);
  for (std::size_t begin = 0; begin < pieces.size();) {
    std::size_t end = begin;
    std::uint64_t batch = 0;
    while (end < pieces.size() && batch < std::min(kBatchBytes, total / 16 + 1)) batch += pieces[end++].bytes;
    pool.run(end - begin, [&](std::size_t index, int worker) noexcept {
      const Piece& piece = pieces[begin + index];
      if (first_error.is_before(piece.target)) return;
      try {
        load_piece(reader, targets[piece.target], piece, buffers[static_cast<std::size_t>(worker)].as<std::byte>());
      } catch (const Error& error) {
        first_error.report(piece.target, error);
      }
    });
    done += batch;
    begin = end;
    if (progress) progress(done, total);
  }
  first_error.rethrow();
}

/// One piece of memory for all matrices, in layer order. The models that fit a laptop have matrices below 2 MiB, which alone would get no
/// huge page, and ordinary pages cost up to a third of the reading speed of one token.
AlignedBuffer bind_matrices(std::span<const TensorTarget> targets) {
  const auto place_bytes = [](const TensorTarget& target) {
    return target.matrix == nullptr ? 0 : round_up(target.matrix->size_bytes(), kWeightAlignment);
  };
  std::size_t total = 0;
  for (const TensorTarget& target : targets) {
    const auto sum = checked_add(total, place_bytes(target));
    if (!sum) throw_out_of_memory("weights: more bytes than this machine can address");
    total = *sum;
  }
  AlignedBuffer memory(total, "weights");
  std::byte* next = memory.data();
  for (const TensorTarget& target : targets) {
    if (target.matrix == nullptr) continue;
    target.matrix->bind(next);
    next += place_bytes(target);
  }
  return memory;
}

template <class... Tensors>
std::uint64_t bytes_of(const Tensors&... tensors) noexcept {
  return (tensors.size_bytes() + ...);
}

std::uint64_t layer_bytes(const LayerWeights& layer) noexcept {
  std::uint64_t bytes = layer.query.matrix().size_bytes() + layer.key.matrix().size_bytes() + layer.value.matrix().size_bytes() +
                        layer.attention_output.matrix().size_bytes() + layer.gate.matrix().size_bytes() + layer.up.matrix().size_bytes() +
                        layer.down.matrix().size_bytes();
  const ExpertWeights& experts = layer.experts;
  bytes += experts.router.matrix().size_bytes() + experts.gate.matrix().size_bytes() + experts.up.matrix().size_bytes() +
           experts.down.matrix().size_bytes() + experts.shared_gate.matrix().size_bytes();
  bytes += bytes_of(layer.attention_norm, layer.query_bias, layer.key_bias, layer.value_bias, layer.attention_output_bias, layer.query_norm,
                    layer.key_norm, layer.attention_post_norm, layer.ffn_norm, layer.gate_bias, layer.up_bias, layer.down_bias,
                    layer.ffn_post_norm);
  return bytes;
}

}  // namespace

std::uint64_t Weights::size_bytes() const noexcept {
  std::uint64_t bytes = embedding.matrix().size_bytes() + untied_head.matrix().size_bytes();
  bytes += bytes_of(head_bias) + bytes_of(output_norm);
  for (const LayerWeights& layer : layers) bytes += layer_bytes(layer);
  return bytes;
}

Weights load_weights(const gguf::Reader& reader, ModelConfig& config, const LoadProgress& progress, ThreadPool& pool) {
  Weights weights;
  const std::vector<TensorTarget> targets = plan_tensors(reader, config, weights);
  weights.matrices = bind_matrices(targets);
  std::vector<Piece> pieces = cut_pieces(targets);
  sort_by_place(pieces, targets);
  load_pieces(reader, targets, pieces, progress, pool);
  return weights;
}

}  // namespace quench
