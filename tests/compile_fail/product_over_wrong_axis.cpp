// The feed-forward block's hidden channels are no residual stream: weights Embed -> Ffn do not take them.
// expect: "product over the wrong axis: the activations' axis is not the weights' input axis"
#include "model/activation_rows.h"

using namespace quench;

void project(const Compute& compute, ActivationScratch& scratch, const Linear<Embed, Ffn>& weights, View<float, Seq, Embed> residual,
             View<float, Seq, Ffn> hidden, View<float, Seq, Ffn> out) {
#ifdef MUST_FAIL
  multiply(compute, scratch, hidden, into(weights, out));
#else
  multiply(compute, scratch, residual, into(weights, out));
#endif
  (void)residual;
  (void)hidden;
}
