#include "kernels/generic/attention.h"

#include "kernels/avx512/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx512 {

void fill_attention(KernelTable& table) { generic::Attention<Lanes>::fill(table); }

}  // namespace quench::avx512
