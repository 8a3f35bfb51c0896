#include "kernels/generic/rows.h"

#include "kernels/avx2/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx2 {

void fill_rows(KernelTable& table) { generic::Rows<Lanes>::fill(table); }

}  // namespace quench::avx2
