#include "base/cpu.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"

#if defined(__x86_64__)
#include "base/x86_features.h"
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
                                  IsaName{Isa::kAvx512, "avx512"}, IsaName{Isa::kAmx, "amx"}};

CpuFeatures detect() {
  CpuFeatures features;
#if defined(__x86_64__)
  features.processor = x86_brand_string();
  decide_x86(read_x86_facts(), features);
#else
  features.processor = "aarch64 processor";
  features.neon_dot = (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
  return features;
}

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

bool CpuFeatures::runs(Isa isa) const noexcept {
  switch (isa) {
    case Isa::kScalar: return true;
    case Isa::kNeon: return neon_dot;
    case Isa::kAvx2: return avx2;
    case Isa::kAvx512: return avx512;
    case Isa::kAmx: return amx;
  }
  return false;
}

std::string CpuFeatures::describe(const Refusal& refusal) const {
  Isa instead = Isa::kScalar;
  for (const auto& entry : kIsaNames) {
    if (runs(entry.isa)) instead = entry.isa;
  }
  return std::string(isa_name(refusal.isa)) + ": " + refusal.why + "; " + std::string(isa_name(instead)) + " runs instead";
}

bool isa_available(Isa isa) { return cpu_features().runs(isa); }

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
    std::string why = "this machine (" + cpu_features().processor + ") lacks it";
    for (const Refusal& refusal : cpu_features().refusals) {
      if (refusal.isa == *isa) why = refusal.why;
    }
    throw_bad_request("QUENCH_ISA=" + std::string(forced) + ": " + why + "; it runs " + names);
  }
  return *isa;
}

int default_thread_count() { return std::min(physical_cores_in_affinity_mask(), cgroup_core_limit()); }

}  // namespace quench
