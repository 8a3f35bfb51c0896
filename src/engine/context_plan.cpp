#include "engine/context_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace quench {
namespace {

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

/// The most positions, up to `limit`, of which one sequence fits the budget.
std::size_t positions_within(const KvLayout& layout, std::uint64_t budget_bytes, std::size_t chunk, std::size_t limit) {
  std::size_t low = 0;  // fits
  std::size_t high = limit;
  while (low < high) {
    const std::size_t middle = low + (high - low + 1) / 2;
    if (layout.bytes_for(middle, chunk) <= budget_bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

ContextPlan plan_context(const KvLayout& layout, std::size_t trained, std::uint64_t available_bytes, std::size_t chunk,
                         std::optional<std::size_t> requested, std::uint64_t budget_bytes) {
  if (requested && *requested == 0) throw_bad_request("context: 0 positions hold nothing; ask for at least 1");
  if (requested && *requested > trained) {
    throw_bad_request(fmt::format("context: {} positions are asked for, but the model was trained for {}", *requested, trained));
  }
  ContextPlan plan;
  plan.trained = trained;
  if (budget_bytes > available_bytes) {
    throw_out_of_memory(fmt::format("cache budget: {:.1f} MiB are asked for, and {:.1f} MiB are free", mebibytes(budget_bytes),
                                    mebibytes(available_bytes)));
  }
  plan.budget_bytes = budget_bytes > 0 ? budget_bytes : available_bytes / 2;
  plan.fits = positions_within(layout, plan.budget_bytes, chunk, trained);
  const std::size_t wanted = requested.value_or(trained);
  if (plan.fits == 0 || (requested && wanted > plan.fits)) {
    const std::size_t least = requested.value_or(1);
    throw_out_of_memory(fmt::format("context: {} positions need {:.1f} MiB of cache, and its budget is {:.1f} MiB, enough for {} positions",
                                    least, mebibytes(layout.bytes_for(least, chunk)), mebibytes(plan.budget_bytes), plan.fits));
  }
  plan.context = std::min(wanted, plan.fits);
  plan.cache_bytes = layout.bytes_for(plan.context, chunk);
  return plan;
}

}  // namespace quench
