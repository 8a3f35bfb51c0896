#include "kernels/generic/attention.h"

#include "kernels/fillers.h"
#include "kernels/neon/lanes.h"

namespace quench::neon {

void fill_attention(KernelTable& table) { generic::Attention<Lanes>::fill(table); }

}  // namespace quench::neon
