#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/random.h"
#include "kernels/linear.h"
#include "quant/random_blocks.h"

// Speed of the linear layers by format: arithmetic (multiply and add count as two) and weight bytes per second.
// The matrix of the cases with few tokens is larger than the caches, as a model's weights together are.

namespace {

using namespace quench;

void run_linear(benchmark::State& state, Format format, std::size_t rows, std::size_t columns, std::size_t tokens, int threads) {
  const auto block = static_cast<std::size_t>(format_info(format).block_elements);
  columns = (columns + block - 1) / block * block;
  ThreadPool pool(threads);
  const Compute compute{kernels_for(selected_isa()), pool};
  Xoshiro256 random(1);
  PackedMatrix matrix(format, rows, columns, "benchmark");
  std::vector<std::byte> file(16 * *row_bytes(format, columns));
  random_blocks(format, random, 16 * columns / block, 0.05f, file.data());
  for (std::size_t row = 0; row < rows; row += 16) matrix.pack_rows(row, file);
  std::vector<float> x(tokens * columns);
  for (float& v : x) v = static_cast<float>(random.uniform() * 2 - 1);
  AlignedArray<float> out(tokens * rows, "results");  // in huge pages, as in a model
  Activations activations(tokens, columns);
  activations.assign(compute, activation_kind(format), x.data(), tokens, columns, columns);
  for (auto _ : state) {
    linear(compute, matrix, activations, out.data(), rows);
    benchmark::DoNotOptimize(out.data());
  }
  const auto per_second = [&](double amount) { return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate); };
  state.counters["GOP/s"] = per_second(2e-9 * static_cast<double>(rows * columns * tokens));
  state.counters["GB/s"] = per_second(1e-9 * static_cast<double>(matrix.size_bytes()));
}

void register_all() {
  for (const FormatInfo& info : all_formats()) {
    for (const int threads : {1, 2}) {
      for (const std::size_t columns : {576u, 1024u}) {
        const std::string name = "linear/" + std::string(info.name) + "/k" + std::to_string(columns) + "/threads" + std::to_string(threads);
        for (const std::size_t tokens : {1u, 2u, 4u, 8u, 16u}) {
          benchmark::RegisterBenchmark((name + "/tokens" + std::to_string(tokens)).c_str(), [=, format =
                                                                                                    info.format](benchmark::State& state) {
            run_linear(state, format, 65536, columns, tokens, threads);
          })->UseRealTime();
        }
        benchmark::RegisterBenchmark((name + "/tokens512").c_str(), [=, format = info.format](benchmark::State& state) {
          run_linear(state, format, 1536, columns, 512, threads);
        })->UseRealTime();
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
