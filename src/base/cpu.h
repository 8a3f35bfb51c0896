#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quench {

/// An instruction set for which kernels exist. Order is preference: later is faster.
enum class Isa { kScalar, kNeon, kAvx2, kAvx512, kAmx };

/// Lower-case name, as QUENCH_ISA takes it: scalar, neon, avx2, avx512, amx.
[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;
[[nodiscard]] std::optional<Isa> isa_from_name(std::string_view name) noexcept;

enum class RefusalCause {
  kProcessor,  ///< the processor has only a part of what the kernels need
  kSystem      ///< the processor has it, and the operating system does not allow it
};

/// An instruction set that the processor reports and that nevertheless does not run.
struct Refusal {
  Isa isa;
  RefusalCause cause;
  std::string why;
};

/// What the processor and the operating system together allow: a feature counts only when CPUID reports it *and* XCR0 says that
/// its registers are saved (and, for tiles, the kernel has granted them). avx2 = AVX2, FMA, F16C, BMI2; avx512 = F, BW, DQ, VL, VNNI;
/// amx = avx512 and int8 tiles; neon = the aarch64 dot product.
struct CpuFeatures {
  bool avx2 = false;
  bool avx512 = false;
  bool amx = false;
  bool amx_bf16 = false;  ///< tiles multiply bf16, too; without it bf16 weights run the avx512 kernel
  bool neon_dot = false;
  std::vector<Refusal> refusals;  ///< in the order of Isa, at most one each
  std::string processor;          ///< brand string

  [[nodiscard]] bool runs(Isa isa) const noexcept;
  /// "amx: the kernel refuses the tiles (Operation not permitted); avx512 runs instead"
  [[nodiscard]] std::string describe(const Refusal& refusal) const;
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
