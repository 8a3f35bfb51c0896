#pragma once

namespace quench {

/// While alive, the tile instructions of this process run on EmulatedTiles where the processor does not know them: a handler of SIGILL
/// decodes them. So the very instructions of tile_registers.h are tested on machines without AMX; a processor that has them runs them
/// itself. Any other illegal instruction ends the program as ever. For tests; one at a time.
class TileTraps {
 public:
  TileTraps();
  TileTraps(const TileTraps&) = delete;
  TileTraps& operator=(const TileTraps&) = delete;
  ~TileTraps();
};

}  // namespace quench
