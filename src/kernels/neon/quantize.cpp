#include "kernels/generic/quantize.h"

#include "kernels/fillers.h"
#include "kernels/neon/lanes.h"

namespace quench::neon {

void fill_quantize(KernelTable& table) { generic::Quantize<Lanes>::fill(table); }

}  // namespace quench::neon
