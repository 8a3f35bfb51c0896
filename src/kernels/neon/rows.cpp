#include "kernels/generic/rows.h"

#include "kernels/fillers.h"
#include "kernels/neon/lanes.h"

namespace quench::neon {

void fill_rows(KernelTable& table) { generic::Rows<Lanes>::fill(table); }

}  // namespace quench::neon
