#include "kernels/generic/rows.h"

#include "kernels/avx512/lanes.h"
#include "kernels/fillers.h"

namespace quench::avx512 {

void fill_rows(KernelTable& table) { generic::Rows<Lanes>::fill(table); }

}  // namespace quench::avx512
