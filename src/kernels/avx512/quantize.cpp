#include "kernels/generic/quantize.h"

#include "kernels/avx512/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx512 {

void fill_quantize(KernelTable& table) { generic::Quantize<Lanes>::fill(table); }

}  // namespace quench::avx512
