#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quench {

/// An instruction set for which kernels exist. Order is preference: later is faster.
enum class Isa { kScalar, kNeon, kAvx2, kAvx512 };

/// Lower-case name, as QUENCH_ISA takes it: scalar, neon, avx2, avx512.
[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;
[[nodiscard]] std::optional<Isa> isa_from_name(std::string_view name) noexcept;

/// What the processor and the operating system together allow: a feature counts only when CPUID reports it *and* XCR0 says that
/// its registers are saved. avx2 = AVX2, FMA, F16C; avx512 = F, BW, DQ, VL, VNNI; neon = the aarch64 dot product.
struct CpuFeatures {
  bool avx2 = false;
  bool avx512 = false;
  bool amx_int8 = false;  ///< reported by the processor; used once kernels exist
  bool neon_dot = false;
  std::string processor;  ///< brand string
};

[[nodiscard]] const CpuFeatures& cpu_features();

[[nodiscard]] bool isa_available(Isa isa);
/// Every ISA that can run here, scalar first.
[[nodiscard]] std::vector<Isa> available_isas();
/// The best one, or the one that the environment variable QUENCH_ISA forces. Throws Error(kBadRequest) when the variable names an
/// unknown set or one that this machine lacks.
[[nodiscard]] Isa selected_isa();

/// Physical cores inside the affinity mask, bounded by the cgroup's CPU quota; at least 1.
[[nodiscard]] int default_thread_count();

}  // namespace quench
