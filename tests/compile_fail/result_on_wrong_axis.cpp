// A projection to the vocabulary does not fit into the residual stream, whatever the sizes are.
// expect: "product over the wrong axis: the result's axis is not the weights' output axis"
#include "model/projection.h"

using namespace quench;

Product<Embed> project(const Linear<Embed, Vocab>& head, View<float, Seq, Vocab> logits, View<float, Seq, Embed> residual) {
  (void)logits;
  (void)residual;
#ifdef MUST_FAIL
  return into(head, residual);
#else
  return into(head, logits);
#endif
}
