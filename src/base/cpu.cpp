#include "base/cpu.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace quench {
namespace {

struct IsaName {
  Isa isa;
  std::string_view name;
};
constexpr std::array kIsaNames = {IsaName{Isa::kScalar, "scalar"}, IsaName{Isa::kNeon, "neon"}, IsaName{Isa::kAvx2, "avx2"},
                                  IsaName{Isa::kAvx512, "avx512"}};

#if defined(__x86_64__)

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

constexpr bool bit(std::uint32_t word, int index) noexcept { return ((word >> index) & 1u) != 0; }

std::string brand_string() {
  std::array<char, 49> text{};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const CpuidResult r = cpuid(0x80000002u + i, 0);
    std::memcpy(text.data() + 16 * i, &r, 16);
  }
  std::string brand(text.data());
  while (!brand.empty() && brand.back() == ' ') brand.pop_back();
  return brand.empty() ? "x86-64 processor" : brand;
}

CpuFeatures detect() {
  CpuFeatures features;
  features.processor = brand_string();
  const CpuidResult basic = cpuid(1, 0);
  const bool osxsave = bit(basic.ecx, 27);
  if (!osxsave) return features;
  const std::uint64_t xcr0 = read_xcr0();
  const bool ymm_saved = (xcr0 & 0x6u) == 0x6u;
  const bool zmm_saved = (xcr0 & 0xE6u) == 0xE6u;
  const bool tiles_saved = (xcr0 & 0x60000u) == 0x60000u;
  const CpuidResult extended = cpuid(7, 0);
  const bool fma = bit(basic.ecx, 12);
  const bool f16c = bit(basic.ecx, 29);
  features.avx2 = ymm_saved && fma && f16c && bit(extended.ebx, 5);
  const bool f = bit(extended.ebx, 16);
  const bool dq = bit(extended.ebx, 17);
  const bool bw = bit(extended.ebx, 30);
  const bool vl = bit(extended.ebx, 31);
  const bool vnni = bit(extended.ecx, 11);
  features.avx512 = features.avx2 && zmm_saved && f && dq && bw && vl && vnni;
  features.amx_int8 = tiles_saved && bit(extended.edx, 24) && bit(extended.edx, 25);
  return features;
}

#else

CpuFeatures detect() {
  CpuFeatures features;
  features.processor = "aarch64 processor";
  features.neon_dot = (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  return features;
}

#endif

/// CPU quota of the control group in whole cores (rounded up), or a large number when there is none.
int cgroup_core_limit() {
  constexpr int kNoLimit = 1 << 20;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) {
    return std::max(1, static_cast<int>(std::strtod(quota.c_str(), nullptr) / period + 0.999));
  }
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota_us = 0;
  double period_us = 0;
  if (v1_quota >> quota_us && v1_period >> period_us && quota_us > 0 && period_us > 0) {
    return std::max(1, static_cast<int>(quota_us / period_us + 0.999));
  }
  return kNoLimit;
}

/// Distinct physical cores among the processors that this process may run on.
int physical_cores_in_affinity_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    std::string list;
    if (!(siblings >> list)) list = "cpu" + std::to_string(cpu);
    cores.insert(list);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

}  // namespace

std::string_view isa_name(Isa isa) noexcept {
  for (const auto& entry : kIsaNames) {
    if (entry.isa == isa) return entry.name;
  }
  return "unknown";
}

std::optional<Isa> isa_from_name(std::string_view name) noexcept {
  for (const auto& entry : kIsaNames) {
    if (entry.name == name) return entry.isa;
  }
  return std::nullopt;
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

bool isa_available(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return true;
    case Isa::kNeon: return cpu_features().neon_dot;
    case Isa::kAvx2: return cpu_features().avx2;
    case Isa::kAvx512: return cpu_features().avx512;
  }
  return false;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const auto& entry : kIsaNames) {
    if (isa_available(entry.isa)) isas.push_back(entry.isa);
  }
  return isas;
}

Isa selected_isa() {
  const char* forced = std::getenv("QUENCH_ISA");
  if (forced == nullptr || *forced == '\0') return available_isas().back();
  std::string names;
  for (const Isa isa : available_isas()) names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
  const auto isa = isa_from_name(forced);
  if (!isa) throw_bad_request("QUENCH_ISA=" + std::string(forced) + " is not an instruction set; this machine runs " + names);
  if (!isa_available(*isa)) {
    throw_bad_request("QUENCH_ISA=" + std::string(forced) + ": this machine (" + cpu_features().processor + ") lacks it; it runs " + names);
  }
  return *isa;
}

int default_thread_count() { return std::min(physical_cores_in_affinity_mask(), cgroup_core_limit()); }

}  // namespace quench
