#include "kernels/amx/emulated/tile_traps.h"

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/amx/emulated/emulated_tiles.h"

namespace quench {
namespace {

struct sigaction before;

std::uint64_t reg(const ucontext_t& context, unsigned number) noexcept {
  constexpr std::array kOrder = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uint64_t>(context.uc_mcontext.gregs[kOrder[number]]);
}

/// A VEX instruction of three prefix bytes, opcode map 2 (Intel SDM volume 2, 2.3).
struct Instruction {
  std::uint8_t opcode;
  unsigned prefix;  ///< pp: 0 none, 1 66, 2 F3, 3 F2
  unsigned vvvv;    ///< a register operand
  unsigned reg_field;
  unsigned rm;
  bool has_memory;
  std::uint64_t address = 0;  ///< of the memory operand, without the index
  std::uint64_t stride = 0;   ///< scaled index: what tile loads step by
  std::size_t length = 0;
};

std::int64_t read_signed(const std::uint8_t* p, std::size_t bytes) noexcept {
  if (bytes == 1) return static_cast<std::int8_t>(*p);
  std::int32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

/// The memory operand that starts with the modrm byte; the instruction ends with it.
void decode_memory(const ucontext_t& context, const std::uint8_t* start, const std::uint8_t* modrm, Instruction& out) noexcept {
  const unsigned mod = *modrm >> 6;
  const bool high_index = (start[1] & 0x40) == 0;
  const bool high_base = (start[1] & 0x20) == 0;
  const std::uint8_t* p = modrm + 1;
  const bool has_sib = out.rm == 4;
  unsigned base = out.rm;
  if (has_sib) {
    const unsigned index = ((*p >> 3) & 7u) + (high_index ? 8u : 0u);
    if (index != 4) out.stride = reg(context, index) << (*p >> 6);
    base = *p & 7u;
    ++p;
  }
  const bool no_base = mod == 0 && base == 5;
  const std::size_t bytes = mod == 1 ? 1 : (mod == 2 || no_base ? 4 : 0);
  if (bytes > 0) out.address = static_cast<std::uint64_t>(read_signed(p, bytes));
  p += bytes;
  out.length = static_cast<std::size_t>(p - start);
  if (!no_base) {
    out.address += reg(context, base + (high_base ? 8u : 0u));
  } else if (!has_sib) {
    out.address += reinterpret_cast<std::uint64_t>(p);
  }
}

bool decode(const ucontext_t& context, Instruction& out) noexcept {
  const auto* start = reinterpret_cast<const std::uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
  constexpr std::uint8_t kVex3 = 0xC4;
  constexpr std::uint8_t kMap2 = 2;
  if (start[0] != kVex3 || (start[1] & 0x1F) != kMap2) return false;
  const std::uint8_t* modrm = start + 4;
  out.prefix = start[2] & 3u;
  out.vvvv = (~(start[2] >> 3)) & 15u;
  out.opcode = start[3];
  out.reg_field = (*modrm >> 3) & 7u;
  out.rm = *modrm & 7u;
  out.has_memory = (*modrm >> 6) != 3;
  out.length = 5;
  if (out.has_memory) decode_memory(context, start, modrm, out);
  return true;
}

bool configures(const Instruction& in) noexcept {
  EmulatedTiles& tiles = EmulatedTiles::of_thread();
  const int tile = static_cast<int>(in.reg_field);
  if (in.prefix == 0 && in.has_memory) {  // LDTILECFG
    tiles.release();
    tiles.configure(*reinterpret_cast<const TileConfig*>(in.address));
  } else if (in.prefix == 0) {  // TILERELEASE
    tiles.release();
  } else if (in.prefix == 3 && !in.has_memory) {  // TILEZERO
    tiles.zero(tile);
  } else {
    return false;
  }
  return true;
}

bool moves(const Instruction& in) noexcept {
  EmulatedTiles& tiles = EmulatedTiles::of_thread();
  const int tile = static_cast<int>(in.reg_field);
  if (in.prefix == 3) {  // TILELOADD
    tiles.load(tile, reinterpret_cast<const void*>(in.address), in.stride);
  } else if (in.prefix == 2) {  // TILESTORED
    tiles.store(tile, reinterpret_cast<void*>(in.address), in.stride);
  } else {
    return false;
  }
  return true;
}

bool multiplies(const Instruction& in) noexcept {
  EmulatedTiles& tiles = EmulatedTiles::of_thread();
  const int c = static_cast<int>(in.reg_field);
  const int a = static_cast<int>(in.rm);
  const int b = static_cast<int>(in.vvvv);
  if (in.opcode == 0x5E && in.prefix == 3) {  // TDPBSSD
    tiles.dot_signed(c, a, b);
  } else if (in.opcode == 0x5E && in.prefix == 2) {  // TDPBSUD
    tiles.dot_unsigned(c, a, b);
  } else if (in.opcode == 0x5C && in.prefix == 2) {  // TDPBF16PS
    tiles.dot_bf16(c, a, b);
  } else {
    return false;
  }
  return true;
}

void on_illegal(int, siginfo_t*, void* raw) {
  ucontext_t& context = *static_cast<ucontext_t*>(raw);
  Instruction in{};
  const bool done = decode(context, in) && (in.opcode == 0x49 ? configures(in) : (in.opcode == 0x4B ? moves(in) : multiplies(in)));
  if (done) {
    context.uc_mcontext.gregs[REG_RIP] += static_cast<greg_t>(in.length);
  } else {
    ::sigaction(SIGILL, &before, nullptr);  // and meets it again
  }
}

}  // namespace

TileTraps::TileTraps() {
  struct sigaction action{};
  action.sa_sigaction = on_illegal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGILL, &action, &before);
}

TileTraps::~TileTraps() { ::sigaction(SIGILL, &before, nullptr); }

}  // namespace quench
