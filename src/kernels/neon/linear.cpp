#include "kernels/generic/linear.h"

#include "kernels/fillers.h"
#include "kernels/neon/dot.h"

namespace quench::neon {

void fill_linear(std::array<LinearKernel, kFormatSlots>& linear) { generic::Linear<DotLanes>::fill(linear); }

}  // namespace quench::neon
