// How alike texts are, by their embeddings: the cosine of each with the first. usage: similarity MODEL TEXT TEXT...

#include <cstdio>
#include <numeric>
#include <quench/quench.hpp>

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: similarity MODEL TEXT TEXT...\n");
    return 2;
  }
  try {
    const auto model = quench::api::Model::load(argv[1]);
    const quench::api::Engine engine(model, {.context = 1024});
    const auto first = engine.embed(argv[2]);
    for (int i = 3; i < argc; ++i) {
      const auto other = engine.embed(argv[i]);
      std::printf("%.4f  %s\n", std::inner_product(first.begin(), first.end(), other.begin(), 0.0), argv[i]);
    }
  } catch (const quench::api::Error& error) {
    std::fprintf(stderr, "similarity: %s\n", error.what());
    return 1;
  }
}
