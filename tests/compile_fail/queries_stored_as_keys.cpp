// The cache stores keys and values; queries do not convert.
// expect-gcc: "quench::Axes<quench::Heads, quench::HeadDim>>' to 'View<[...],quench::Seq, quench::Axes<quench::KvHeads, quench::HeadDim>>'"
// expect-gcc: "initializing argument 2 of 'void quench::AttentionBlock::append"
// expect-clang: "Axes<Heads, [...]>>' to 'View<[2 * ...], Axes<KvHeads, [...]>>'"
// expect-clang: "passing argument to parameter 'keys' here"
#include "model/attention_block.h"

using namespace quench;

void store(AttentionBlock& attention, const AttentionCall& call, View<float, Seq, QueryChannels> queries, View<float, Seq, KvChannels> keys,
           View<float, Seq, KvChannels> values) {
#ifdef MUST_FAIL
  attention.append(call, queries, values);
#else
  attention.append(call, keys, values);
#endif
  (void)queries;
  (void)keys;
}
