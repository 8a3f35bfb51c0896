#include "kernels/attention.h"

namespace quench {

std::string_view cache_type_name(CacheType type) noexcept { return type == CacheType::kF16 ? "f16" : "q8_0"; }

std::optional<CacheType> cache_type_from_name(std::string_view name) noexcept {
  for (const CacheType type : kCacheTypes) {
    if (cache_type_name(type) == name) return type;
  }
  return std::nullopt;
}

}  // namespace quench
