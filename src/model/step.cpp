#include "model/step.h"

#include <algorithm>
#include <cstring>

#include "base/profile.h"
#include "model/request_check.h"
#include "model/row_parallel.h"

namespace quench {
namespace {

/// Of a request's rows, those that go through the last layer: they are its last ones.
std::size_t wanted_rows(const SequenceTokens& request) noexcept {
  switch (request.wanted) {
    case Wanted::kNone: return 0;
    case Wanted::kLast: return 1;
    case Wanted::kAll: break;
  }
  return request.tokens.size();
}

}  // namespace

Step::Step(const Model& model, const Compute& compute, ForwardScratch& scratch, std::span<const SequenceTokens> requests)
    : model_(model), config_(model.config()), compute_(compute), scratch_(scratch), requests_(requests) {
  scratch_.spans.clear();
  for (const SequenceTokens& request : requests) {
    scratch_.spans.push_back({.sequence = request.sequence,
                              .pos0 = request.sequence->length(),
                              .first_row = n_rows_,
                              .n_rows = request.tokens.size(),
                              .rope_row = n_rows_});
    n_rows_ += request.tokens.size();
  }
}

void Step::run() {
  embed();
  for (RopeTable& rope : scratch_.ropes) {
    for (const StepSpan& span : scratch_.spans) rope.fill(span.rope_row, span.pos0, span.n_rows);
  }
  for (std::size_t layer = 0; layer < config_.n_layers && n_rows_ > 0; ++layer) {
    attention(layer, layer + 1 == config_.n_layers);
    if (n_rows_ > 0) feed_forward(layer);
  }
}

void Step::embed() {
  const ProfileScope scope(compute_.profile, "embed");
  const PackedMatrix& embedding = model_.weights().embedding.matrix();
  const auto residual = scratch_.residual.first(n_rows_);
  std::size_t first_row = 0;
  for (const SequenceTokens& request : requests_) {
    for_each_row(compute_.pool, request.tokens.size(), [&](std::size_t i) noexcept {
      const auto row = residual.row(first_row + i);
      embedding.gather_row(request.tokens[i], row.elements());
      if (config_.embedding_scale != 1.0f) compute_.kernels.scale(row.data(), config_.embedding_scale, config_.n_embed);
    });
    first_row += request.tokens.size();
  }
}

View<const float, Seq, Embed> Step::hidden(std::size_t begin, std::size_t n) {
  const auto normed = scratch_.branch.first(n);
  normalize(scratch_.residual.view().rows(begin, n), model_.weights().output_norm, normed);
  return normed;
}

View<float, Seq, Vocab> Step::logits(std::size_t begin, std::size_t n) {
  const ProfileScope scope(compute_.profile, "head");
  const auto normed = hidden(begin, n);
  const auto out = scratch_.logits.first(n);
  multiply(compute_, scratch_.activations, normed, into(model_.weights().head(), out));
  const Tensor<float, Vocab>& bias = model_.weights().head_bias;
  for_each_row(compute_.pool, n, [&](std::size_t row) noexcept {
    float* logits = out.row(row).data();
    if (!bias.empty()) compute_.kernels.add(logits, bias.data(), config_.n_vocab);
    if (config_.logit_soft_cap > 0.0f) compute_.kernels.soft_cap(logits, config_.logit_soft_cap, config_.n_vocab);
    scratch_.logits_finite[row] = all_finite(out.row(row).elements()) ? 1 : 0;
  });
  return out;
}

void Step::normalize(View<const float, Seq, Embed> x, const Tensor<float, Embed>& weight, View<float, Seq, Embed> out) const {
  const ProfileScope scope(compute_.profile, "norm");
  for_each_row(compute_.pool, x.size<Seq>(), [&](std::size_t row) noexcept {
    compute_.kernels.rms_norm(x.row(row).data(), weight.data(), config_.n_embed, config_.norm_epsilon, out.row(row).data());
  });
}

/// residual += post_norm(branch + bias)
void Step::add_branch(const Tensor<float, Embed>& bias, const Tensor<float, Embed>& post_norm, View<float, Seq, Embed> branch) {
  const ProfileScope scope(compute_.profile, "residual");
  const auto residual = scratch_.residual.first(n_rows_);
  for_each_row(compute_.pool, branch.size<Seq>(), [&](std::size_t row) noexcept {
    float* out = branch.row(row).data();
    if (!bias.empty()) compute_.kernels.add(out, bias.data(), config_.n_embed);
    if (!post_norm.empty()) compute_.kernels.rms_norm(out, post_norm.data(), config_.n_embed, config_.norm_epsilon, out);
    compute_.kernels.add(residual.row(row).data(), out, config_.n_embed);
  });
}

void Step::attention(std::size_t layer, bool last_layer) {
  const LayerWeights& weights = model_.weights().layers[layer];
  const LayerConfig& layer_config = config_.layers[layer];
  const auto call = [&] {
    return AttentionCall{
        .compute = compute_,
        .layer = layer,
        .transform = {.weights = weights, .rope = scratch_.ropes[layer_config.rope], .norm_epsilon = config_.norm_epsilon},
        .options = {.window = layer_config.window, .soft_cap = config_.attention_soft_cap, .query_scale = config_.query_scale},
        .spans = scratch_.spans};
  };
  const auto keys = scratch_.keys.first(n_rows_);
  const auto values = scratch_.values.first(n_rows_);
  const auto branch = scratch_.branch.first(n_rows_);
  normalize(scratch_.residual.first(n_rows_), weights.attention_norm, branch);

  const auto all_wanted = [&] {
    return std::ranges::all_of(requests_, [](const SequenceTokens& request) { return wanted_rows(request) == request.tokens.size(); });
  };
  if (last_layer && !all_wanted()) {
    {
      const ProfileScope scope(compute_.profile, "qkv");
      multiply(compute_, scratch_.activations, branch, into(weights.key, keys), into(weights.value, values));
    }
    scratch_.attention.append(call(), keys, values);
    keep_wanted_rows();
    if (n_rows_ == 0) return;
    const auto queries = scratch_.queries.first(n_rows_);
    {
      const ProfileScope scope(compute_.profile, "qkv");
      multiply(compute_, scratch_.activations, branch.rows(0, n_rows_), into(weights.query, queries));
    }
    scratch_.attention.attend(call(), queries);
  } else {
    const auto queries = scratch_.queries.first(n_rows_);
    {
      const ProfileScope scope(compute_.profile, "qkv");
      multiply(compute_, scratch_.activations, branch, into(weights.query, queries), into(weights.key, keys), into(weights.value, values));
    }
    if (n_rows_ == scratch_.spans.size()) {
      scratch_.attention.append_and_attend(call(), queries, keys, values);
    } else {
      scratch_.attention.append(call(), keys, values);
      scratch_.attention.attend(call(), queries);
    }
  }
  const auto live = scratch_.branch.first(n_rows_);
  const ProfileScope scope(compute_.profile, "attention output");
  multiply(compute_, scratch_.activations, scratch_.queries.first(n_rows_), into(weights.attention_output, live));
  add_branch(weights.attention_output_bias, weights.attention_post_norm, live);
}

/// Moves the wanted rows of the residual and of its normalized form to the front.
void Step::keep_wanted_rows() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    StepSpan& span = scratch_.spans[i];
    const std::size_t wanted = wanted_rows(requests_[i]);
    const std::size_t skipped = span.n_rows - wanted;
    for (std::size_t row = 0; row < wanted; ++row) {
      const std::size_t from = span.first_row + skipped + row;
      for (auto* rows : {&scratch_.residual, &scratch_.branch}) {
        std::memmove(rows->view().row(kept + row).data(), rows->view().row(from).data(), config_.n_embed * sizeof(float));
      }
    }
    span = {
        .sequence = span.sequence, .pos0 = span.pos0 + skipped, .first_row = kept, .n_rows = wanted, .rope_row = span.rope_row + skipped};
    kept += wanted;
  }
  n_rows_ = kept;
}

void Step::feed_forward(std::size_t layer) {
  const LayerWeights& weights = model_.weights().layers[layer];
  const auto branch = scratch_.branch.first(n_rows_);
  normalize(scratch_.residual.first(n_rows_), weights.ffn_norm, branch);
  if (config_.experts.n_experts > 0) {
    add_branch(weights.down_bias, weights.ffn_post_norm, mixture(weights, branch));
  } else {
    dense(weights, branch);
    add_branch(weights.down_bias, weights.ffn_post_norm, branch);
  }
}

/// branch = down(activation(gate branch) * (up branch)), without the last bias.
void Step::dense(const LayerWeights& weights, View<float, Seq, Embed> branch) const {
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
View<float, Seq, Embed> Step::mixture(const LayerWeights& weights, View<float, Seq, Embed> branch) const {
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

}  // namespace quench
