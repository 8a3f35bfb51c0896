#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/token.h"
#include "kernels/compute.h"
#include "model/kv_sequence.h"
#include "model/model.h"

namespace quench {

/// A token id as the model sees it: a row of the embedding.
using TokenId = Token;

/// Receives the logits [n_vocab] of row `row` of the request, rows ascending. The span is valid during the call.
using LogitSink = std::function<void(std::size_t row, std::span<const float> logits)>;

/// Rows whose logits are asked for.
enum class Wanted { kNone, kLast, kAll };

/// What a step appends to one sequence.
struct SequenceTokens {
  KvSequence* sequence;
  std::span<const TokenId> tokens;
  Wanted wanted = Wanted::kLast;
};

/// Receives the logits [n_vocab] of row `row` of request `request`, both ascending. The span is valid until the next pass.
using StepSink = std::function<void(std::size_t request, std::size_t row, std::span<const float> logits)>;

struct ForwardOptions {
  std::size_t chunk = 512;                                ///< most tokens in one pass over the weights
  std::uint64_t scratch_bytes = std::uint64_t{48} << 20;  ///< the chunk is made smaller when its scratch would take more
};

class ForwardScratch;

/// Runs a model. Holds the scratch of one step; one thread at a time. Logits at a position depend on the token ids up to it, the model
/// file and the KV type, and on nothing else: not on the chunk, the batch, the threads, the instruction set, or what was cached.
///
/// Every entry checks before any work: `pos0` equals the sequence's length, the tokens are in the vocabulary and not empty, and the
/// positions fit (KvSequence::check_room). Logits that are not finite: Error(kBadFile). After an error the sequence holds the chunks
/// that were complete before it: for a request of one chunk, what it held before.
class Forward {
 public:
  /// `model` outlives this; the kernels and the pool in `compute`, too. Throws Error(kBadRequest) for a chunk of 0, Error(kOutOfMemory).
  Forward(const Model& model, const Compute& compute, const ForwardOptions& options = {});
  Forward(Forward&&) noexcept;
  ~Forward();

  /// Appends `tokens` and gives the logits [n_vocab] after the last one, valid until the next call. The last layer computes one row.
  [[nodiscard]] std::span<const float> prefill(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens);
  /// Appends one token: prefill of one.
  [[nodiscard]] std::span<const float> decode(KvSequence& sequence, std::size_t pos0, TokenId token);
  /// Appends `tokens` and gives the logits after each of them. The sink must not use this object.
  void prefill_all(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens, const LogitSink& sink);

  /// Appends `tokens` and gives, instead of logits, what the head would multiply: the last layer's normalised output [n_embed] after each
  /// of them. The sink must not use this object.
  void prefill_hidden(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens, const LogitSink& sink);

  /// Appends to several sequences in one pass over the weights; each sequence once, all tokens together at most chunk(). Nothing is
  /// appended when it throws. The sink must not use this object.
  void step(std::span<const SequenceTokens> requests, const StepSink& sink);

  /// Tokens in one pass, after the scratch limit.
  [[nodiscard]] std::size_t chunk() const noexcept;
  [[nodiscard]] std::uint64_t scratch_bytes() const noexcept;
  [[nodiscard]] const Model& model() const noexcept { return model_; }

 private:
  void check_request(const SequenceTokens& request, std::size_t chunk_rows) const;
  static void check_start(const KvSequence& sequence, std::size_t pos0);
  void run_step(std::span<const SequenceTokens> requests, const StepSink& sink);
  using ChunkWork = std::function<void(std::size_t done, const SequenceTokens& request)>;
  void in_chunks(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens, const ChunkWork& work);

  const Model& model_;
  Compute compute_;
  std::unique_ptr<ForwardScratch> scratch_;
};

/// Scratch that Forward would take for this config, in bytes.
[[nodiscard]] std::uint64_t forward_scratch_bytes(const ModelConfig& config, std::size_t chunk, std::size_t threads) noexcept;

/// The logits after every token, computed without a cache, row by row: the oracle of Forward. K and V are rounded as a cache of `type`
/// stores them, and attention walks the same pages of 64 positions, so that the bits are equal.
void forward_uncached(const Model& model, const Compute& compute, std::span<const TokenId> tokens, const LogitSink& sink,
                      CacheType type = CacheType::kF16);

}  // namespace quench
