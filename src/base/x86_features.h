#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/cpu.h"

namespace quench {

/// What an x86 processor, its operating system and the kernel say, as read and with nothing concluded yet: a test fills it with
/// masks that no machine at hand has.
struct X86Facts {
  std::uint32_t leaf1_ecx = 0;  ///< CPUID 1
  std::uint32_t leaf7_ebx = 0;  ///< CPUID 7.0
  std::uint32_t leaf7_ecx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint32_t palette_ebx = 0;  ///< CPUID 1D.1: bytes of a tile row, tiles
  std::uint32_t palette_ecx = 0;  ///< rows
  std::uint64_t xcr0 = 0;         ///< register states that the operating system saves; 0 where it does not say (no OSXSAVE)
  /// Asks the kernel to let this process use tiles: 0, or errno. Called only when everything else allows them.
  int (*request_tiles)() = nullptr;
};

/// Sets what can run in `features`, and says why what the processor reports besides cannot. Never calls on an instruction set for
/// more than its bits.
void decide_x86(const X86Facts& facts, CpuFeatures& features);

#if defined(__x86_64__)
/// Of this machine.
[[nodiscard]] X86Facts read_x86_facts() noexcept;
[[nodiscard]] std::string x86_brand_string();
#endif

}  // namespace quench
