#include "base/x86_features.h"

#include <array>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace quench {
namespace {

constexpr bool bit(std::uint32_t word, int index) noexcept { return ((word >> index) & 1u) != 0; }

// XCR0: SSE and AVX; the same with mask registers and both kinds of upper halves of AVX-512; tile configuration and data.
constexpr std::uint64_t kYmmStates = 0x6;
constexpr std::uint64_t kZmmStates = 0xE6;
constexpr std::uint64_t kTileStates = 0x60000;

constexpr bool saves(std::uint64_t xcr0, std::uint64_t states) noexcept { return (xcr0 & states) == states; }

struct Part {
  std::string_view name;
  bool reported;
};

/// Names of the parts that the processor lacks, or nothing.
std::string missing(std::initializer_list<Part> parts) {
  std::string names;
  for (const Part& part : parts) {
    if (!part.reported) names += (names.empty() ? "" : ", ") + std::string(part.name);
  }
  return names;
}

std::string not_saved(std::uint64_t xcr0) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), xcr0, 16).ptr;
  return "the operating system does not save its registers (XCR0 0x" + std::string(digits.begin(), end) + ")";
}

/// The kernels use 8 tiles of 16 rows of 64 bytes, palette 1 of every processor so far.
constexpr bool palette_fits(const X86Facts& facts) noexcept {
  const std::uint32_t row_bytes = facts.palette_ebx & 0xFFFF;
  const std::uint32_t tiles = facts.palette_ebx >> 16;
  const std::uint32_t rows = facts.palette_ecx & 0xFFFF;
  return row_bytes >= 64 && tiles >= 8 && rows >= 16;
}

/// Decides one instruction set: it runs when the one below it does, no part is missing and its registers are saved. The first thing
/// that speaks against it is noted.
bool decide(Isa isa, bool below, std::string_view below_name, const std::string& parts_missing, std::uint64_t states, const X86Facts& facts,
            CpuFeatures& features) {
  const auto refuse = [&](RefusalCause cause, std::string why) {
    features.refusals.push_back({isa, cause, std::move(why)});
    return false;
  };
  if (!saves(facts.xcr0, states)) return refuse(RefusalCause::kSystem, not_saved(facts.xcr0));
  if (!parts_missing.empty()) return refuse(RefusalCause::kProcessor, "the processor lacks " + parts_missing);
  if (!below) return refuse(RefusalCause::kProcessor, std::string(below_name) + " does not run here");
  return true;
}

}  // namespace

void decide_x86(const X86Facts& facts, CpuFeatures& features) {
  const std::uint32_t ebx = facts.leaf7_ebx;
  const std::uint32_t edx = facts.leaf7_edx;
  if (bit(ebx, 5)) {
    const std::string lacks = missing({{"FMA", bit(facts.leaf1_ecx, 12)}, {"F16C", bit(facts.leaf1_ecx, 29)}, {"BMI2", bit(ebx, 8)}});
    features.avx2 = decide(Isa::kAvx2, true, "", lacks, kYmmStates, facts, features);
  }
  if (bit(ebx, 16)) {
    const std::string lacks =
        missing({{"BW", bit(ebx, 30)}, {"DQ", bit(ebx, 17)}, {"VL", bit(ebx, 31)}, {"VNNI", bit(facts.leaf7_ecx, 11)}});
    features.avx512 = decide(Isa::kAvx512, features.avx2, "avx2", lacks, kZmmStates, facts, features);
  }
  if (bit(edx, 24)) {
    const std::string lacks = missing({{"int8 tiles", bit(edx, 25)}, {"8 tiles of 16 rows of 64 bytes", palette_fits(facts)}});
    features.amx = decide(Isa::kAmx, features.avx512, "avx512", lacks, kTileStates, facts, features);
    const int problem = features.amx ? facts.request_tiles() : 0;
    if (problem != 0) {
      features.amx = false;
      features.refusals.push_back(
          {Isa::kAmx, RefusalCause::kSystem, std::string("the kernel refuses the tiles (") + std::strerror(problem) + ")"});
    }
    features.amx_bf16 = features.amx && bit(edx, 22);
  }
}

#if defined(__x86_64__)
namespace {

struct CpuidResult {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidResult cpuid(std::uint32_t leaf, std::uint32_t subleaf) noexcept {
  CpuidResult r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

std::uint64_t read_xcr0() noexcept {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

/// Linux gives a process its 8 KiB of tile registers on request (5.16; older kernels do not set XCR0's bits).
int request_tiles() noexcept {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0 : errno;
}

}  // namespace

X86Facts read_x86_facts() noexcept {
  const CpuidResult basic = cpuid(1, 0);
  const CpuidResult extended = cpuid(7, 0);
  const CpuidResult palette = bit(extended.edx, 24) ? cpuid(0x1D, 1) : CpuidResult{};
  const bool osxsave = bit(basic.ecx, 27);
  return {basic.ecx, extended.ebx, extended.ecx, extended.edx, palette.ebx, palette.ecx, osxsave ? read_xcr0() : 0, request_tiles};
}

std::string x86_brand_string() {
  std::array<char, 49> text{};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const CpuidResult r = cpuid(0x80000002u + i, 0);
    std::memcpy(text.data() + 16 * i, &r, 16);
  }
  std::string brand(text.data());
  while (!brand.empty() && brand.back() == ' ') brand.pop_back();
  return brand.empty() ? "x86-64 processor" : brand;
}
#endif

}  // namespace quench
