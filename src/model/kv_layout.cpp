#include <algorithm>
#include <string>

#include "base/checked.h"
#include "base/error.h"
#include "model/config.h"
#include "model/kv_cache.h"

namespace quench {

KvLayout make_kv_layout(const ModelConfig& config, CacheType type) {
  if (type == CacheType::kQ8_0 && config.head_dim % kCacheBlockChannels != 0) {
    throw_unsupported("kv cache: q8_0 keeps channels in blocks of " + std::to_string(kCacheBlockChannels) + ", but the heads have " +
                      std::to_string(config.head_dim) + "; use f16");
  }
  KvLayout layout;
  layout.type = type;
  layout.n_kv_heads = config.n_kv_heads;
  layout.head_dim = config.head_dim;
  for (const LayerConfig& layer : config.layers) {
    auto found = std::ranges::find(layout.groups, layer.window, &KvGroup::window);
    if (found == layout.groups.end()) found = layout.groups.insert(found, KvGroup{.window = layer.window, .n_layers = 0});
    const auto group = static_cast<std::size_t>(found - layout.groups.begin());
    layout.layers.push_back({.group = group, .slot = found->n_layers++});
  }
  return layout;
}

std::uint64_t KvLayout::bytes_per_position() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t group = 0; group < groups.size(); ++group) bytes += page_bytes(group) / kPagePositions;
  return bytes;
}

std::uint64_t KvLayout::bytes_for(std::size_t positions, std::size_t chunk) const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const std::size_t all = ceil_div(positions, kPagePositions);
    // Before a step the oldest visible position is window - 1 behind it; a page at either end may be partly used.
    const std::size_t behind_window = ceil_div(groups[group].window + chunk, kPagePositions) + 1;
    bytes += page_bytes(group) * (groups[group].window == 0 ? all : std::min(all, behind_window));
  }
  return bytes;
}

}  // namespace quench
