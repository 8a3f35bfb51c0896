#include "kernels/generic/linear.h"

#include "kernels/neon/dot.h"
#include "kernels/fillers.h"

namespace quench::neon {

void fill_linear(std::array<LinearKernel, kFormatSlots>& linear) { generic::Linear<DotLanes>::fill(linear); }

}  // namespace quench::neon
