#include "model/forward.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/float_control.h"
#include "base/profile.h"
#include "model/forward_scratch.h"
#include "model/request_check.h"
#include "model/row_parallel.h"

namespace quench {
namespace {

/// Rows of a step whose logits are asked for.
enum class Wanted { kNone, kLast, kAll };

/// One pass over the weights for the rows of one step.
class Step {
 public:
  Step(const Model& model, const Compute& compute, ForwardScratch& scratch, KvSequence& sequence, std::size_t n_rows)
      : model_(model), config_(model.config()), compute_(compute), scratch_(scratch), sequence_(sequence), n_rows_(n_rows) {}

  void embed(std::span<const TokenId> tokens) const {
    const ProfileScope scope(compute_.profile, "embed");
    const PackedMatrix& embedding = model_.weights().embedding.matrix();
    const auto residual = scratch_.residual.first(n_rows_);
    for_each_row(compute_.pool, n_rows_, [&](std::size_t row) noexcept {
      embedding.gather_row(tokens[row], residual.row(row).elements());
      if (config_.embedding_scale != 1.0f) compute_.kernels.scale(residual.row(row).data(), config_.embedding_scale, config_.n_embed);
    });
  }

  /// Leaves the residual of the wanted rows in place; the last layer computes no others beyond their keys and values.
  void run_layers(Wanted wanted) const {
    for (RopeTable& rope : scratch_.ropes) rope.fill(sequence_.length(), n_rows_);
    for (std::size_t layer = 0; layer < config_.n_layers; ++layer) {
      const std::size_t first_row = layer + 1 < config_.n_layers ? 0 : first_wanted(wanted);
      attention(layer, first_row);
      if (first_row < n_rows_) feed_forward(layer, first_row);
    }
  }

  /// Logits of rows [begin, begin + n) in the scratch.
  [[nodiscard]] View<float, Seq, Vocab> logits(std::size_t begin, std::size_t n) const {
    const auto residual = scratch_.residual.view().rows(begin, n);
    const auto normed = scratch_.branch.first(n);
    const ProfileScope scope(compute_.profile, "head");
    normalize(residual, model_.weights().output_norm, normed);
    const auto out = scratch_.logits.first(n);
    multiply(compute_, scratch_.activations, normed, into(model_.weights().head(), out));
    const Tensor<float, Vocab>& bias = model_.weights().head_bias;
    for_each_row(compute_.pool, n, [&](std::size_t row) noexcept {
      float* logits = out.row(row).data();
      if (!bias.empty()) compute_.kernels.add(logits, bias.data(), config_.n_vocab);
      if (config_.logit_soft_cap > 0.0f) compute_.kernels.soft_cap(logits, config_.logit_soft_cap, config_.n_vocab);
    });
    return out;
  }

  [[nodiscard]] std::size_t first_wanted(Wanted wanted) const noexcept {
    if (wanted == Wanted::kAll) return 0;
    return wanted == Wanted::kLast ? n_rows_ - 1 : n_rows_;
  }

 private:
  void normalize(View<const float, Seq, Embed> x, const Tensor<float, Embed>& weight, View<float, Seq, Embed> out) const {
    const ProfileScope scope(compute_.profile, "norm");
    for_each_row(compute_.pool, x.size<Seq>(), [&](std::size_t row) noexcept {
      compute_.kernels.rms_norm(x.row(row).data(), weight.data(), config_.n_embed, config_.norm_epsilon, out.row(row).data());
    });
  }

  /// residual += post_norm(branch + bias)
  void add_branch(const Tensor<float, Embed>& bias, const Tensor<float, Embed>& post_norm, View<float, Seq, Embed> branch,
                  View<float, Seq, Embed> residual) const {
    const ProfileScope scope(compute_.profile, "residual");
    for_each_row(compute_.pool, branch.size<Seq>(), [&](std::size_t row) noexcept {
      float* out = branch.row(row).data();
      if (!bias.empty()) compute_.kernels.add(out, bias.data(), config_.n_embed);
      if (!post_norm.empty()) compute_.kernels.rms_norm(out, post_norm.data(), config_.n_embed, config_.norm_epsilon, out);
      compute_.kernels.add(residual.row(row).data(), out, config_.n_embed);
    });
  }

  /// Stores keys and values of all rows; rows from first_row on attend and go on.
  void attention(std::size_t layer, std::size_t first_row) const {
    const LayerWeights& weights = model_.weights().layers[layer];
    const std::size_t n_live = n_rows_ - first_row;
    const auto branch = scratch_.branch.first(n_rows_);
    const auto queries = scratch_.queries.first(n_rows_);
    normalize(scratch_.residual.first(n_rows_), weights.attention_norm, branch);
    project(weights, first_row);

    const StepPlace place{.sequence = &sequence_, .layer = layer, .pos0 = sequence_.length()};
    const LayerConfig& layer_config = config_.layers[layer];
    const HeadTransform transform{.weights = &weights, .rope = &scratch_.ropes[layer_config.rope], .norm_epsilon = config_.norm_epsilon};
    const AttentionOptions options{
        .window = layer_config.window, .soft_cap = config_.attention_soft_cap, .query_scale = config_.query_scale};
    const auto keys = scratch_.keys.first(n_rows_);
    const auto values = scratch_.values.first(n_rows_);
    if (n_rows_ == 1 && n_live == 1) {
      scratch_.attention.append_and_attend_one(compute_, place, transform, options, queries, keys, values);
    } else {
      scratch_.attention.append(compute_, place, transform, keys, values);
      if (n_live == 0) return;
      scratch_.attention.attend(compute_, place, transform, options, first_row, queries);
    }
    const ProfileScope scope(compute_.profile, "attention output");
    const auto live = branch.rows(first_row, n_live);
    multiply(compute_, scratch_.activations, queries.rows(first_row, n_live), into(weights.attention_output, live));
    add_branch(weights.attention_output_bias, weights.attention_post_norm, live, scratch_.residual.view().rows(first_row, n_live));
  }

  void project(const LayerWeights& weights, std::size_t first_row) const {
    const ProfileScope scope(compute_.profile, "qkv");
    const auto branch = scratch_.branch.first(n_rows_);
    const auto queries = scratch_.queries.first(n_rows_);
    const auto keys = into(weights.key, scratch_.keys.first(n_rows_));
    const auto values = into(weights.value, scratch_.values.first(n_rows_));
    if (first_row == 0) {
      multiply(compute_, scratch_.activations, branch, into(weights.query, queries), keys, values);
      return;
    }
    multiply(compute_, scratch_.activations, branch, keys, values);
    const std::size_t n_live = n_rows_ - first_row;
    if (n_live == 0) return;
    multiply(compute_, scratch_.activations, branch.rows(first_row, n_live), into(weights.query, queries.rows(first_row, n_live)));
  }

  void feed_forward(std::size_t layer, std::size_t first_row) const {
    const LayerWeights& weights = model_.weights().layers[layer];
    const std::size_t n = n_rows_ - first_row;
    const auto residual = scratch_.residual.view().rows(first_row, n);
    const auto branch = scratch_.branch.first(n);
    normalize(residual, weights.ffn_norm, branch);
    if (config_.experts.n_experts > 0) {
      add_branch(weights.down_bias, weights.ffn_post_norm, mixture(weights, branch), residual);
    } else {
      dense(weights, branch);
      add_branch(weights.down_bias, weights.ffn_post_norm, branch, residual);
    }
  }

  /// branch = down(activation(gate branch) * (up branch)), without the last bias.
  void dense(const LayerWeights& weights, View<float, Seq, Embed> branch) const {
    const ProfileScope scope(compute_.profile, "gate and up");
    const std::size_t n = branch.size<Seq>();
    const auto gate = scratch_.gate.first(n);
    const auto up = scratch_.up.first(n);
    multiply(compute_, scratch_.activations, branch, into(weights.gate, gate), into(weights.up, up));
    const ProfileScope activation_scope(compute_.profile, "activation");
    const auto activate = config_.activation == FfnActivation::kSilu ? compute_.kernels.silu_mul : compute_.kernels.gelu_mul;
    for_each_row(compute_.pool, n, [&](std::size_t row) noexcept {
      float* gate_row = gate.row(row).data();
      float* up_row = up.row(row).data();
      if (!weights.gate_bias.empty()) compute_.kernels.add(gate_row, weights.gate_bias.data(), config_.n_ffn);
      if (!weights.up_bias.empty()) compute_.kernels.add(up_row, weights.up_bias.data(), config_.n_ffn);
      activate(gate_row, up_row, config_.n_ffn, gate_row);
    });
    const ProfileScope down_scope(compute_.profile, "down");
    multiply(compute_, scratch_.activations, gate, into(weights.down, branch));
  }

  /// The routed experts' sum, plus sigmoid(gate) times the shared expert where there is one. Uses up `branch`.
  [[nodiscard]] View<float, Seq, Embed> mixture(const LayerWeights& weights, View<float, Seq, Embed> branch) const {
    const auto sum = scratch_.experts.run(compute_, scratch_.activations, weights.experts, branch);
    if (weights.experts.shared_gate.empty()) return sum;
    const auto shares = scratch_.shared_gate.first(branch.size<Seq>());
    multiply(compute_, scratch_.activations, branch, into(weights.experts.shared_gate, shares));
    compute_.kernels.sigmoid(shares.data(), shares.element_count());
    dense(weights, branch);
    for_each_row(compute_.pool, branch.size<Seq>(), [&](std::size_t row) noexcept {
      compute_.kernels.add_scaled(sum.row(row).data(), *shares.row(row).data(), branch.row(row).data(), config_.n_embed);
    });
    return sum;
  }

  const Model& model_;
  const ModelConfig& config_;
  const Compute& compute_;
  ForwardScratch& scratch_;
  KvSequence& sequence_;
  std::size_t n_rows_;
};

std::size_t rows_within(const ModelConfig& config, const ForwardOptions& options, std::size_t threads) {
  if (options.chunk == 0) throw_bad_request("forward: the chunk is 0 tokens, must be at least 1");
  const ScratchSizes sizes = scratch_sizes(config, threads);
  const std::uint64_t left = options.scratch_bytes > sizes.fixed_bytes ? options.scratch_bytes - sizes.fixed_bytes : 0;
  // A page of positions at least: below that, prefill would lose more than the memory is worth.
  const std::uint64_t rows = std::max<std::uint64_t>(left / sizes.row_bytes, kPagePositions);
  return static_cast<std::size_t>(std::min<std::uint64_t>(options.chunk, rows));
}

}  // namespace

Forward::Forward(const Model& model, const Compute& compute, const ForwardOptions& options) : model_(model), compute_(compute) {
  const int threads = compute.pool.thread_count();
  const std::size_t rows = rows_within(model.config(), options, static_cast<std::size_t>(threads));
  scratch_ = std::make_unique<ForwardScratch>(model.config(), rows, threads);
}

Forward::Forward(Forward&&) noexcept = default;
Forward::~Forward() = default;

std::size_t Forward::chunk() const noexcept { return scratch_->max_rows; }

std::uint64_t Forward::scratch_bytes() const noexcept {
  return forward_scratch_bytes(model_.config(), chunk(), static_cast<std::size_t>(compute_.pool.thread_count()));
}

std::uint64_t forward_scratch_bytes(const ModelConfig& config, std::size_t chunk, std::size_t threads) noexcept {
  const ScratchSizes sizes = scratch_sizes(config, threads);
  return sizes.fixed_bytes + chunk * sizes.row_bytes;
}

void Forward::check_request(const KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens) const {
  if (pos0 != sequence.length()) {
    throw_bad_request("forward: the tokens start at position " + std::to_string(pos0) + ", but the sequence holds " +
                      std::to_string(sequence.length()));
  }
  check_tokens(model_.config(), tokens);
  sequence.check_room(tokens.size(), chunk());
}

std::span<const float> Forward::prefill(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens) {
  const ScopedFloatControl float_control;
  check_request(sequence, pos0, tokens);
  while (true) {
    const std::size_t n = std::min(chunk(), tokens.size());
    const bool last = n == tokens.size();
    sequence.prepare(n);
    const Step step(model_, compute_, *scratch_, sequence, n);
    step.embed(tokens.first(n));
    step.run_layers(last ? Wanted::kLast : Wanted::kNone);
    if (last) {
      const auto logits = step.logits(n - 1, 1).elements();
      check_logits(logits, sequence.length() + n - 1);
      sequence.advance(n);
      return logits;
    }
    sequence.advance(n);
    tokens = tokens.subspan(n);
  }
}

std::span<const float> Forward::decode(KvSequence& sequence, std::size_t pos0, TokenId token) {
  return prefill(sequence, pos0, std::span(&token, 1));
}

void Forward::prefill_all(KvSequence& sequence, std::size_t pos0, std::span<const TokenId> tokens, const LogitSink& sink) {
  const ScopedFloatControl float_control;
  check_request(sequence, pos0, tokens);
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t n = std::min(chunk(), tokens.size() - done);
    sequence.prepare(n);
    const Step step(model_, compute_, *scratch_, sequence, n);
    step.embed(tokens.subspan(done, n));
    step.run_layers(Wanted::kAll);
    for (std::size_t begin = 0; begin < n;) {
      const auto logits = step.logits(begin, std::min(scratch_->logits.size<Seq>(), n - begin));
      for (std::size_t row = 0; row < logits.size<Seq>(); ++row) {
        check_logits(logits.row(row).elements(), pos0 + done + begin + row);
        sink(done + begin + row, logits.row(row).elements());
      }
      begin += logits.size<Seq>();
    }
    sequence.advance(n);
    done += n;
  }
}

}  // namespace quench
