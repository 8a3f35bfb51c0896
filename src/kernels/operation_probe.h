#pragma once

#include <optional>

#include "kernels/compute.h"

namespace quench {

/// How fast all threads of a pool multiply and add with nothing to wait for: the arithmetic's side of a roofline. Nothing where the
/// instruction set has no such loop.
struct OperationRates {
  std::optional<double> int8_per_second;  ///< int8 dot products: a multiplication and an addition are two operations
  std::optional<double> f32_per_second;   ///< f32 fma
  std::optional<double> bf16_per_second;  ///< bf16 dot products, where they have instructions of their own
};

/// One pass, some milliseconds.
[[nodiscard]] OperationRates measure_operation_rates(const Compute& compute);

}  // namespace quench
