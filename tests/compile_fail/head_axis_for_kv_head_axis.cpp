// Keys have KV heads: the buffer of the queries does not take them, though both are heads x head_dim.
// expect: "product over the wrong axis: the result's axis is not the weights' output axis"
#include "model/weights.h"

using namespace quench;

Product<Embed> project_keys(const LayerWeights& layer, View<float, Seq, QueryChannels> queries, View<float, Seq, KvChannels> keys) {
  (void)queries;
  (void)keys;
#ifdef MUST_FAIL
  return into(layer.key, queries);
#else
  return into(layer.key, keys);
#endif
}
