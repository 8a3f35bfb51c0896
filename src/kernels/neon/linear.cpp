#include "kernels/generic/linear.h"

#include "kernels/fillers.h"
#include "kernels/neon/dot.h"

namespace quench::neon {

void fill_linear(KernelTable& table) { generic::Linear<DotLanes>::fill(table); }

}  // namespace quench::neon
