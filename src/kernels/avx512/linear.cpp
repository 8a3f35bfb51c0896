#include "kernels/generic/linear.h"

#include "kernels/avx512/dot.h"
#include "kernels/fillers.h"

namespace quench::avx512 {

void fill_linear(std::array<LinearKernel, kFormatSlots>& linear) { generic::Linear<DotLanes>::fill(linear); }

}  // namespace quench::avx512
