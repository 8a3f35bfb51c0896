#include "kernels/generic/linear.h"

#include "kernels/avx512/dot.h"
#include "kernels/fillers.h"

namespace quench::avx512 {

void fill_linear(KernelTable& table) {
  generic::Linear<DotLanes>::fill(table);
  table.blocking.group = 24;  // 6 tokens of two tiles, 8 of one
}

}  // namespace quench::avx512
