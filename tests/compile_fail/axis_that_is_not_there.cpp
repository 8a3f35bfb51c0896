// The residual stream has no head axis to ask for.
// expect: "the tensor has no such axis"
#include "tensor/tensor.h"

using namespace quench;

std::size_t heads(View<const float, Seq, Embed> residual) {
#ifdef MUST_FAIL
  return residual.size<Heads>();
#else
  return residual.size<Embed>();
#endif
}
