#include "base/tile_state.h"

namespace quench {

#if defined(__x86_64__)
namespace {

/// What the thread's tiles are configured as. The registers are part of the thread's state: a context switch keeps both together.
thread_local const TileConfig* configured = nullptr;

}  // namespace

void configure_tiles(const TileConfig& config) noexcept {
  if (configured == &config) return;
  // Not the intrinsic: GCC 12's takes only a pointer, and the compiler may then drop the stores that fill what it points to. This operand
  // is all 64 bytes.
  asm volatile("ldtilecfg %0" : : "m"(config));
  configured = &config;
}

void release_tiles() noexcept {
  if (configured == nullptr) return;
  asm volatile("tilerelease");
  configured = nullptr;
}
#else
void configure_tiles(const TileConfig&) noexcept {}
void release_tiles() noexcept {}
#endif

}  // namespace quench
