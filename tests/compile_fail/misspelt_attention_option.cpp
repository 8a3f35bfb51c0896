// Options are named: a misspelt one is not taken for another.
// expect-gcc: "has no non-static data member named 'windwo'"
// expect-clang: "field designator 'windwo' does not refer to any field in type"
#include "model/attention_block.h"

using namespace quench;

AttentionOptions options() {
#ifdef MUST_FAIL
  const AttentionOptions result{.windwo = 512, .soft_cap = 0.0f, .query_scale = 1.0f};
#else
  const AttentionOptions result{.window = 512, .soft_cap = 0.0f, .query_scale = 1.0f};
#endif
  return result;
}
