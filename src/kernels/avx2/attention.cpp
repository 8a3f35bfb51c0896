#include "kernels/generic/attention.h"

#include "kernels/avx2/dot.h"
#include "kernels/fillers.h"

namespace quench::avx2 {

void fill_attention(KernelTable& table) { generic::Attention<DotLanes>::fill(table); }

}  // namespace quench::avx2
