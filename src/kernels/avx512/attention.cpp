#include "kernels/generic/attention.h"

#include "kernels/avx512/dot.h"
#include "kernels/fillers.h"

namespace quench::avx512 {

void fill_attention(KernelTable& table) { generic::Attention<DotLanes>::fill(table); }

}  // namespace quench::avx512
