#include "kernels/generic/attention.h"

#include "kernels/avx2/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx2 {

void fill_attention(KernelTable& table) { generic::Attention<Lanes>::fill(table); }

}  // namespace quench::avx2
