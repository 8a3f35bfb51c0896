#include "kernels/generic/attention.h"

#include "kernels/fillers.h"
#include "kernels/neon/dot.h"

namespace quench::neon {

void fill_attention(KernelTable& table) { generic::Attention<DotLanes>::fill(table); }

}  // namespace quench::neon
