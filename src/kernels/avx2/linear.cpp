#include "kernels/generic/linear.h"

#include "kernels/avx2/dot.h"
#include "kernels/fillers.h"

namespace quench::avx2 {

void fill_linear(std::array<LinearKernel, kFormatSlots>& linear) { generic::Linear<DotLanes>::fill(linear); }

}  // namespace quench::avx2
