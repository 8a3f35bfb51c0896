#include "model/activation_rows.h"

#include "base/profile.h"

namespace quench {
namespace {

/// linear_jobs, in the region of the operation around it with the format of the weights.
void run_jobs(const Compute& compute, std::span<LinearJob> jobs, const Activations& activations) {
  const ProfileScope scope(compute.profile, nullptr, format_info(jobs.front().weights->format()).name);
  linear_jobs(compute, jobs, activations);
}

}  // namespace

ActivationScratch::ActivationScratch(std::size_t max_rows, std::size_t max_columns) {
  // Pages are taken only when touched: a kind that the model does not use costs nothing.
  for (Activations& activations : by_kind_) activations = Activations(max_rows, max_columns);
}

Activations& ActivationScratch::assign(const Compute& compute, ActivationKind kind, const float* x, std::size_t n, std::size_t columns,
                                       std::size_t stride) {
  const ProfileScope scope(compute.profile, "quantize");
  Activations& activations = by_kind_[static_cast<std::size_t>(kind)];
  activations.assign(compute, kind, x, n, columns, stride);
  return activations;
}

void ActivationScratch::multiply_jobs(const Compute& compute, const float* x, std::size_t n, std::size_t columns, std::size_t stride,
                                      std::span<const LinearJob> jobs) {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    std::array<LinearJob, kMaxJobs> same_kind{};
    std::size_t count = 0;
    for (const LinearJob& job : jobs) {
      if (static_cast<std::size_t>(activation_kind(job.weights->format())) == kind) same_kind[count++] = job;
    }
    if (count == 0) continue;
    const Activations& activations = assign(compute, static_cast<ActivationKind>(kind), x, n, columns, stride);
    run_jobs(compute, std::span(same_kind).first(count), activations);
  }
}

void ActivationScratch::multiply(const Compute& compute, const float* x, std::size_t n, std::size_t columns, std::size_t stride,
                                 std::span<LinearJob> jobs) {
  run_jobs(compute, jobs, assign(compute, activation_kind(jobs.front().weights->format()), x, n, columns, stride));
}

void ActivationScratch::multiply_selected(const Compute& compute, const float* x, std::size_t n, std::size_t columns, std::size_t stride,
                                          std::span<const std::uint32_t> selected, std::span<LinearJob> jobs) {
  Activations& activations = assign(compute, activation_kind(jobs.front().weights->format()), x, n, columns, stride);
  activations.select(selected);
  run_jobs(compute, jobs, activations);
}

}  // namespace quench
