#include "kernels/generic/quantize.h"

#include "kernels/avx2/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx2 {

void fill_quantize(KernelTable& table) { generic::Quantize<Lanes>::fill(table); }

}  // namespace quench::avx2
