#include "kernels/generic/linear.h"

#include "kernels/avx2/dot.h"
#include "kernels/fillers.h"

namespace quench::avx2 {

void fill_linear(KernelTable& table) { generic::Linear<DotLanes>::fill(table); }

}  // namespace quench::avx2
