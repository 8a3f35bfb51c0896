// A tensor of one axis has no rows.
// expect: "a tensor of one axis has elements, not rows"
#include "tensor/tensor.h"

using namespace quench;

float first(View<const float, Embed> weights) {
#ifdef MUST_FAIL
  return weights.row(0).data()[0];
#else
  return weights.data()[0];
#endif
}
