#include "kernels/generic/linear.h"

#include "kernels/avx512/dot.h"
#include "kernels/fillers.h"

namespace quench::avx512 {

void fill_linear(KernelTable& table) { generic::Linear<DotLanes>::fill(table); }

}  // namespace quench::avx512
